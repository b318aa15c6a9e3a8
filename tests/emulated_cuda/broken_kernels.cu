#include "emulated_cuda/broken_kernels.h"

#include "kernels/device.h"

namespace simile::broken {

using kernels::AsyncCopy16;
using kernels::AsyncCopyCommit;
using kernels::AsyncCopyWait;
using kernels::DynamicShared;
using kernels::SharedArray;

__global__ void MissingBarrier(const int* in, int* out) {
  __shared__ SharedArray<int, kThreads> values;
  values[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void MissingBarrierPlain(const int* in, int* out) {
  __shared__ int values[kThreads];
  values[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void MissingBarrierBeforeReuse(const int* in, int* out) {
  __shared__ SharedArray<int, kThreads> values;
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
  values[threadIdx.x] = 0;  // another thread may not have read it yet
  __syncthreads();
  out[threadIdx.x] += values[threadIdx.x];
}

__global__ void MissingCopyWait(const int* in, int* out) {
  __shared__ SharedArray<int, kThreads> values;
  if (threadIdx.x < kThreads / 4) {
    AsyncCopy16(values.data() + threadIdx.x * 4, in + threadIdx.x * 4, true);
    AsyncCopyCommit();
    AsyncCopyWait<1>();  // the group may be unfinished
  }
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void WriteBesideGlobal(const int* in, int* out, int offset) {
  out[static_cast<int>(threadIdx.x) + offset] = in[kThreads - 1 - threadIdx.x];
}

__global__ void IndexBehindShared(const int* in, int* out) {
  __shared__ SharedArray<int, kThreads - 1> values;
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void WriteBehindShared(const int* in, int* out) {
  __shared__ SharedArray<int, kThreads - 1> values;
  values.data()[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values.data()[kThreads - 1 - threadIdx.x];
}

__global__ void WriteBehindDynamic(const int* in, int* out) {
  int* const values = reinterpret_cast<int*>(DynamicShared());
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void UnwrittenShared(const int* in, int* out) {
  __shared__ SharedArray<int, kThreads> values;
  if (threadIdx.x != 7) values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void UnwrittenPlain(const int* in, int* out) {
  __shared__ int values[kThreads];
  if (threadIdx.x != 7) values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void UnwrittenDynamic(const int* in, int* out) {
  int* const values = reinterpret_cast<int*>(DynamicShared());
  if (threadIdx.x != 7) values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void UnwrittenGlobal(const int* in, int* out, int* scratch) {
  if (threadIdx.x != 7) scratch[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = scratch[kThreads - 1 - threadIdx.x];
}

__global__ void ReturnBeforeBarrier(const int* in, int* out) {
  __shared__ SharedArray<int, kThreads> values;
  values[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x >= 96) {
    out[threadIdx.x] = in[kThreads - 1 - threadIdx.x];
    return;
  }
  __syncthreads();
  out[threadIdx.x] = in[kThreads - 1 - threadIdx.x];
}

__global__ void TwoBarriers(const int* in, int* out) {
  if (threadIdx.x < 64) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = in[kThreads - 1 - threadIdx.x];
}

__global__ void MissingSyncwarp(const int* in, int* out) {
  __shared__ SharedArray<int, kThreads> values;
  const unsigned warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  values[threadIdx.x] = in[kThreads - 32 - warp + lane];
  out[threadIdx.x] = values[warp + 31 - lane];
}

__global__ void WrongLaneMask(const int* in, int* out) {
  int value = in[kThreads - 1 - threadIdx.x];
  if (threadIdx.x % 32 < 16) value = __shfl_sync(~0U, value, threadIdx.x % 32);
  out[threadIdx.x] = value;
  __syncwarp();
}

__global__ void NotInOwnMask(const int* in, int* out) {
  const int value = in[kThreads - 1 - threadIdx.x];
  out[threadIdx.x] = __shfl_sync(0xFFFFU, value, threadIdx.x % 32);
}

__global__ void LastWriter(const int* in, int* out) {
  for (int i = 0; i < kThreads; ++i) out[i] = in[kThreads - 1 - i] + static_cast<int>(blockIdx.x);
}

__global__ void MisalignedCopy(const int* in, int* out) {
  __shared__ SharedArray<int, kThreads> values;
  if (threadIdx.x < kThreads / 4 - 1) {
    AsyncCopy16(values.data() + threadIdx.x * 4, in + threadIdx.x * 4 + 1, true);
  }
  AsyncCopyCommit();
  AsyncCopyWait<0>();
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void TooMuchShared(const int* in, int* out) {
  __shared__ SharedArray<int, 12 * 1024 + 1> values;
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

cudaError_t Launch(Bug bug, const int* in, int* out, int* scratch, cudaStream_t stream) {
  constexpr std::size_t kBytes = kThreads * sizeof(int);
  const auto launch = [&](auto* kernel, std::size_t shared_bytes, auto... more) {
    return kernels::Launch(kernel, dim3(1), dim3(kThreads), shared_bytes, stream, in, out, more...);
  };
  switch (bug) {
    case Bug::kMissingBarrier:
      return launch(MissingBarrier, 0);
    case Bug::kMissingBarrierPlain:
      return launch(MissingBarrierPlain, 0);
    case Bug::kMissingBarrierBeforeReuse:
      return launch(MissingBarrierBeforeReuse, 0);
    case Bug::kMissingCopyWait:
      return launch(MissingCopyWait, 0);
    case Bug::kWriteBehindGlobal:
      return launch(WriteBesideGlobal, 0, 1);
    case Bug::kWriteBeforeGlobal:
      return launch(WriteBesideGlobal, 0, -1);
    case Bug::kIndexBehindShared:
      return launch(IndexBehindShared, 0);
    case Bug::kWriteBehindShared:
      return launch(WriteBehindShared, 0);
    case Bug::kWriteBehindDynamic:
      return launch(WriteBehindDynamic, kBytes - sizeof(int));
    case Bug::kUnwrittenShared:
      return launch(UnwrittenShared, 0);
    case Bug::kUnwrittenPlain:
      return launch(UnwrittenPlain, 0);
    case Bug::kUnwrittenDynamic:
      return launch(UnwrittenDynamic, kBytes);
    case Bug::kUnwrittenGlobal:
      return launch(UnwrittenGlobal, 0, scratch);
    case Bug::kReturnBeforeBarrier:
      return launch(ReturnBeforeBarrier, 0);
    case Bug::kTwoBarriers:
      return launch(TwoBarriers, 0);
    case Bug::kMissingSyncwarp:
      return launch(MissingSyncwarp, 0);
    case Bug::kWrongLaneMask:
      return launch(WrongLaneMask, 0);
    case Bug::kNotInOwnMask:
      return launch(NotInOwnMask, 0);
    case Bug::kLastWriter:
      return kernels::Launch(LastWriter, dim3(16), dim3(1), 0, stream, in, out);
    case Bug::kMisalignedCopy:
      return launch(MisalignedCopy, 0);
    case Bug::kTooMuchShared:
      return launch(TooMuchShared, 0);
  }
  return cudaErrorInvalidValue;
}

}  // namespace simile::broken

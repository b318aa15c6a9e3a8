#include "emulated_cuda/sample_kernels.h"

#include "kernels/device.h"

namespace simile::samples {

using kernels::AsyncCopy16;
using kernels::AsyncCopyCommit;
using kernels::AsyncCopyWait;
using kernels::Bits;
using kernels::DynamicShared;
using kernels::LoadAcquire;
using kernels::SharedArray;

namespace {

constexpr int kReversed = 128;

__device__ __forceinline__ int Lane() { return static_cast<int>(threadIdx.x % 32); }

}  // namespace

__global__ void Scale(int* values, int count, int factor, int addend) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const auto value = static_cast<unsigned>(values[i]);
  values[i] =
      static_cast<int>(value * static_cast<unsigned>(factor) + static_cast<unsigned>(addend));
}

__global__ void Intrinsics(int* out) {
  const int lane = Lane();
  int row = 0;
  const auto put = [&](int value) { out[row++ * 32 + lane] = value; };
  put(__shfl_sync(~0U, lane, 5));
  put(__shfl_sync(~0U, lane, 3, 8));
  put(__shfl_down_sync(~0U, lane, 3, 16));
  put(__shfl_up_sync(~0U, lane, 2));
  put(__shfl_xor_sync(~0U, lane, 7));
  put(static_cast<int>(__ballot_sync(~0U, lane % 3 == 0)));
  put(__any_sync(~0U, lane == 31) * 2 + __all_sync(~0U, lane < 31));
  put(static_cast<int>(__reduce_add_sync(~0U, static_cast<unsigned>(lane))));
  put(__reduce_min_sync(~0U, lane - 40));
  put(__reduce_max_sync(~0U, -lane));
  put(static_cast<int>(__reduce_or_sync(~0U, 1U << lane % 5)));
  // Two masks of one warp at a time.
  put(lane < 8 ? __shfl_xor_sync(0xFFU, lane, 1) : __shfl_xor_sync(~0xFFU, lane, 1));
  put(__syncthreads_count(lane % 2) * 4 + (__syncthreads_or(lane == 9) != 0 ? 2 : 0) +
      (__syncthreads_and(lane != 9) != 0 ? 1 : 0));
  put(__popc(static_cast<unsigned>(lane)) * 10000 + __ffs(lane) * 100 + __clz(lane));
  put(static_cast<int>(__match_any_sync(~0U, lane / 4)));
  __shared__ SharedArray<int, 4> cells;
  if (lane < 4) cells[lane] = lane == 3 ? 100 : 0;
  __syncwarp();
  atomicAdd(&cells[0], lane);
  atomicMax(&cells[1], lane);
  atomicOr(reinterpret_cast<unsigned*>(&cells[2]), 1U << lane);
  atomicMin(&cells[3], lane);
  __syncwarp();
  for (int i = 0; i < 4; ++i) put(cells[i]);
  put(__dp4a(0x01020304, 0x05FB0708, lane));
  put(static_cast<int>(__byte_perm(0x33221100U, 0x77665544U, 0x7150U)));
  put(kernels::WarpSum(lane));
  put(static_cast<int>(__brev(static_cast<unsigned>(lane))));
  put(static_cast<int>(__funnelshift_r(0x89ABCDEFU, 0x01234567U, 8)));
}

__global__ void Mma(const unsigned short* a, const unsigned short* b, float* sums) {
  const int lane = Lane(), group = lane / 4, pair = lane % 4 * 2;
  const auto pair_at = [](const unsigned short* at) { return at[0] | unsigned{at[1]} << 16; };
  const unsigned left[4] = {pair_at(a + group * 16 + pair), pair_at(a + (group + 8) * 16 + pair),
                            pair_at(a + group * 16 + pair + 8),
                            pair_at(a + (group + 8) * 16 + pair + 8)};
  const unsigned right[2] = {pair_at(b + group * 16 + pair), pair_at(b + group * 16 + pair + 8)};
  float mine[4];
  for (int i = 0; i < 4; ++i) mine[i] = sums[(group + i / 2 * 8) * 8 + pair + i % 2];
  kernels::Mma16x8x16(mine, left, right);
  for (int i = 0; i < 4; ++i) sums[(group + i / 2 * 8) * 8 + pair + i % 2] = mine[i];
}

__global__ void IntegerMma(const signed char* a, const signed char* b, int* sums) {
  const int lane = Lane(), group = lane / 4, four = lane % 4 * 4, pair = lane % 4 * 2;
  const auto four_at = [](const signed char* at) {
    unsigned bytes = 0;
    for (int i = 3; i >= 0; --i) bytes = bytes << 8 | static_cast<unsigned char>(at[i]);
    return bytes;
  };
  const unsigned left[4] = {four_at(a + group * 32 + four), four_at(a + (group + 8) * 32 + four),
                            four_at(a + group * 32 + four + 16),
                            four_at(a + (group + 8) * 32 + four + 16)};
  const unsigned right[2] = {four_at(b + group * 32 + four), four_at(b + group * 32 + four + 16)};
  int mine[4];
  for (int i = 0; i < 4; ++i) mine[i] = sums[(group + i / 2 * 8) * 8 + pair + i % 2];
  kernels::Mma16x8x32(mine, left, right);
  for (int i = 0; i < 4; ++i) sums[(group + i / 2 * 8) * 8 + pair + i % 2] = mine[i];
}

__global__ void Reverse(const int* in, int count, int* out) {
  __shared__ SharedArray<int, kReversed> values;
  const int first = static_cast<int>(blockIdx.x) * kReversed;
  const int thread = static_cast<int>(threadIdx.x);
  for (int stage = 0; stage < 2; ++stage) {
    const int at = stage * 64 + thread * 4;
    const bool valid = first + at < count;
    if (thread < 16) AsyncCopy16(values.data() + at, valid ? in + first + at : in, valid);
    AsyncCopyCommit();
  }
  AsyncCopyWait<1>();
  __syncthreads();
  if (thread < 64) out[first + kReversed - 1 - thread] = values[thread];
  AsyncCopyWait<0>();
  __syncthreads();
  if (thread >= 64) out[first + kReversed - 1 - thread] = values[thread];
}

__global__ void Rounds(GridRounds rounds) {
  __shared__ int broken;
  const unsigned blocks = gridDim.x;
  for (int round = 1; round <= rounds.rounds; ++round) {
    const bool last = round == rounds.rounds;
    if (last && static_cast<int>(blockIdx.x) == rounds.absent) return;
    if (last && static_cast<int>(blockIdx.x) == rounds.faulty && threadIdx.x == 0) return;
    if (threadIdx.x == 0) {
      rounds.words[blockIdx.x] = blockIdx.x + static_cast<unsigned>(round);
      __threadfence();
      atomicAdd(&rounds.words[blocks], 1U);
      while (LoadAcquire(&rounds.words[blocks]) < blocks * static_cast<unsigned>(round)) {
      }
      broken = 0;
    }
    __syncthreads();
    unsigned sum = 0;
    for (unsigned i = 0; i < blocks; ++i) sum += kernels::LoadFromL2(&rounds.words[i]);
    if (last && threadIdx.x == 0) rounds.out[blockIdx.x] = sum + static_cast<unsigned>(broken);
    // A block writes its word again only after all blocks have read all words.
    __syncthreads();
    if (threadIdx.x == 0 && !last) {
      atomicAdd(&rounds.words[blocks + 1], 1U);
      while (LoadAcquire(&rounds.words[blocks + 1]) < blocks * static_cast<unsigned>(round)) {
      }
    }
    __syncthreads();
  }
}

__global__ void BarriersAndShuffles(int* out, int rounds) {
  __shared__ SharedArray<int, 1024> values;
  int value = static_cast<int>(threadIdx.x);
  const unsigned next = (threadIdx.x + 33) % blockDim.x;
  for (int round = 0; round < rounds; ++round) {
    value = __shfl_xor_sync(~0U, value, 1 << round % 5);
    values[(threadIdx.x + static_cast<unsigned>(round % 2) * 512) % 1024] = value;
    __syncthreads();
    value = values[(next + static_cast<unsigned>(round % 2) * 512) % 1024];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void Dynamic(unsigned* out, std::size_t bytes) {
  unsigned char* const all = DynamicShared();
  for (std::size_t i = threadIdx.x; i < bytes; i += blockDim.x) all[i] = 1;
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes; ++i) sum += all[i];
  out[blockIdx.x] = sum;
}

__global__ void Order(unsigned* counter, unsigned* order) {
  order[atomicAdd(counter, 1U)] = blockIdx.x;
}

cudaError_t LaunchScale(int* values, int count, int factor, int addend, cudaStream_t stream) {
  return kernels::Launch(Scale, dim3(static_cast<unsigned>(count + 63) / 64), dim3(64), 0, stream,
                         values, count, factor, addend);
}

cudaError_t LaunchIntrinsics(int* out, cudaStream_t stream) {
  return kernels::Launch(Intrinsics, dim3(1), dim3(32), 0, stream, out);
}

cudaError_t LaunchMma(const unsigned short* a, const unsigned short* b, float* sums,
                      cudaStream_t stream) {
  return kernels::Launch(Mma, dim3(1), dim3(32), 0, stream, a, b, sums);
}

cudaError_t LaunchIntegerMma(const signed char* a, const signed char* b, int* sums,
                             cudaStream_t stream) {
  return kernels::Launch(IntegerMma, dim3(1), dim3(32), 0, stream, a, b, sums);
}

cudaError_t LaunchReverse(const int* in, int count, int* out, int blocks, cudaStream_t stream) {
  return kernels::Launch(Reverse, dim3(static_cast<unsigned>(blocks)), dim3(kReversed), 0, stream,
                         in, count, out);
}

cudaError_t LaunchGridRounds(const GridRounds& rounds, int blocks, int threads, bool together,
                             cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(blocks)), block(static_cast<unsigned>(threads));
  return together ? kernels::LaunchTogether(Rounds, grid, block, 0, stream, rounds)
                  : kernels::Launch(Rounds, grid, block, 0, stream, rounds);
}

cudaError_t LaunchRounds(int* out, int blocks, int threads, int rounds, cudaStream_t stream) {
  return kernels::Launch(BarriersAndShuffles, dim3(static_cast<unsigned>(blocks)),
                         dim3(static_cast<unsigned>(threads)), 0, stream, out, rounds);
}

cudaError_t LaunchDynamic(unsigned* out, std::size_t bytes, cudaStream_t stream) {
  return kernels::Launch(Dynamic, dim3(3), dim3(96), bytes, stream, out, bytes);
}

cudaError_t AllowDynamic(std::size_t bytes) {
  return cudaFuncSetAttribute(Dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

cudaError_t LaunchOrder(unsigned* counter, unsigned* order, int blocks, cudaStream_t stream) {
  return kernels::Launch(Order, dim3(static_cast<unsigned>(blocks)), dim3(1), 0, stream, counter,
                         order);
}

}  // namespace simile::samples

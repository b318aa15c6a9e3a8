#include "kernels/finish.h"

#include <algorithm>

#include "kernels/finish.cuh"

namespace simile::kernels {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
// Of a multiprocessor: leaves 64 registers a thread. Without a number the compiler aims at full
// occupancy, with 32 registers and a few loads in flight.
constexpr unsigned kBlocksAtOnce = 4;

__device__ __forceinline__ FinishShared& Shared() {
  return *reinterpret_cast<FinishShared*>(DynamicShared());
}

}  // namespace

__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    FinishKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  FinishQuery(pass, blockIdx.x, Shared());
}

__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    PruneKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  const unsigned kept = Prune(pass, blockIdx.x, Shared());
  if (threadIdx.x == 0) pass.proofs[blockIdx.x].kept = kept;
}

__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    RescoreKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  Rescore(pass, blockIdx.y, pass.proofs[blockIdx.y].kept, blockIdx.x * kWarps + threadIdx.x / 32,
          gridDim.x * kWarps);
}

__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    ConcludeKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  Conclude(pass, blockIdx.x, pass.proofs[blockIdx.x].kept, Shared());
}

cudaError_t LaunchFinish(const Pass& pass, cudaStream_t stream) {
  return Launch(FinishKernel, dim3(pass.batch), dim3(kThreads), sizeof(FinishShared), stream, pass);
}

cudaError_t LaunchFinishInSteps(const Pass& pass, unsigned expected, cudaStream_t stream) {
  const dim3 queries(pass.batch), block(kThreads);
  if (const cudaError_t error =
          Launch(PruneKernel, queries, block, sizeof(FinishShared), stream, pass);
      error != cudaSuccess) {
    return error;
  }
  // Each warp takes two rows.
  const dim3 shares(std::clamp((expected + 2 * kWarps - 1) / (2 * kWarps), 1U, 256U), pass.batch);
  if (const cudaError_t error = Launch(RescoreKernel, shares, block, 0, stream, pass);
      error != cudaSuccess) {
    return error;
  }
  return Launch(ConcludeKernel, queries, block, sizeof(FinishShared), stream, pass);
}

}  // namespace simile::kernels

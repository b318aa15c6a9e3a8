#include "kernels/finish.h"

#include <algorithm>

#include "kernels/finish.cuh"

namespace simile::kernels {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;

__device__ __forceinline__ FinishShared& Shared() {
  return *reinterpret_cast<FinishShared*>(DynamicShared());
}

}  // namespace

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    FinishKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  FinishQuery(pass, blockIdx.x, Shared());
}

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    PruneKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  const Candidates candidates = Prune(pass, blockIdx.x, Shared());
  if (threadIdx.x == 0) pass.candidates[blockIdx.x] = candidates;
}

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    ListOthersKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  const Candidates candidates =
      ListOthers(pass, blockIdx.x, LoadCandidates(pass, blockIdx.x), Shared());
  __syncthreads();  // all have loaded the former ones
  if (threadIdx.x == 0) pass.candidates[blockIdx.x] = candidates;
}

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    RescoreKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  const Candidates candidates = LoadCandidates(pass, blockIdx.y);
  Rescore(pass, blockIdx.y, candidates.scored, candidates.listed,
          blockIdx.x * kWarps + threadIdx.x / 32, gridDim.x * kWarps);
}

__global__ void __launch_bounds__(kThreads, kScoringBlocksAtOnce)
    ConcludeKernel(const SIMILE_GRID_CONSTANT Pass pass) {
  Conclude(pass, blockIdx.x, LoadCandidates(pass, blockIdx.x).listed, Shared());
}

cudaError_t LaunchFinish(const Pass& pass, cudaStream_t stream) {
  return Launch(FinishKernel, dim3(pass.batch), dim3(kThreads), sizeof(FinishShared), stream, pass);
}

cudaError_t LaunchFinishInSteps(const Pass& pass, unsigned expected, cudaStream_t stream) {
  const dim3 queries(pass.batch), block(kThreads);
  // Each warp takes two rows.
  const dim3 shares(std::clamp((expected + 2 * kWarps - 1) / (2 * kWarps), 1U, 256U), pass.batch);
  constexpr std::size_t kShared = sizeof(FinishShared);
  cudaError_t error = Launch(PruneKernel, queries, block, kShared, stream, pass);
  if (error == cudaSuccess) error = Launch(RescoreKernel, shares, block, 0, stream, pass);
  if (pass.hits_are_upper_bounds) {
    if (error == cudaSuccess)
      error = Launch(ListOthersKernel, queries, block, kShared, stream, pass);
    if (error == cudaSuccess) error = Launch(RescoreKernel, shares, block, 0, stream, pass);
  }
  if (error != cudaSuccess) return error;
  return Launch(ConcludeKernel, queries, block, kShared, stream, pass);
}

}  // namespace simile::kernels

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace simile::bench::gpu {

// Reads memory once and writes nothing: what a pass over rows can reach at best.
//   from   `bytes` of them, a multiple of 16, aligned to 16
//   sum    [1] written only where the sum of all words is what no memory here holds
cudaError_t LaunchRead(const void* from, std::size_t bytes, unsigned blocks, unsigned* sum,
                       cudaStream_t stream);

// Fills with uniform random halves in [-1/2, 1/2): never zeros, which multiply faster than numbers.
cudaError_t LaunchRandomHalves(void* to, std::size_t count, unsigned seed, cudaStream_t stream);

}  // namespace simile::bench::gpu

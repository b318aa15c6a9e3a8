#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace simile::bench::gpu {

// Reads memory once and writes nothing: the upper limit of a pass over rows.
//   from   [bytes], a multiple of 16, aligned to 16
//   sum    [1] practically never written; keeps the compiler from removing the reads
cudaError_t LaunchRead(const void* from, std::size_t bytes, unsigned blocks, unsigned* sum,
                       cudaStream_t stream);

// Fills with uniform random fp16 values in [-1/2, 1/2). Not zeros: those multiply faster.
cudaError_t LaunchRandomFp16(void* to, std::size_t count, unsigned seed, cudaStream_t stream);

}  // namespace simile::bench::gpu

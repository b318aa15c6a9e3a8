#pragma once

#include <cuda_fp16.h>

namespace simile::kernels {

// The rows of a tile and its first row are multiples of this.
inline constexpr unsigned kTileGranule = 128;

// Cheap scores of positions [first, first + columns) for a batch, as the GEMM writes them.
struct ScoreTile {
  const __half* scores;  // [batch][pitch], positions contiguous
  unsigned pitch;        // a multiple of 8
  unsigned columns;
  unsigned first;
};

}  // namespace simile::kernels

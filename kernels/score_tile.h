#pragma once

#include <cuda_fp16.h>

#include "kernels/pass.h"

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

// sample_gate: the gates of a pass, from the scores of a sample.
//   in   tile         its first sample.rows columns are the sample, so it needs no product
//   in   pass.terms   the rank of each query, its mask
//   out  pass.gates [batch] the rank-th best of the sample minus the margin, rounded down to fp16;
//                              kLowestScore if too few rows of the sample pass
// Work    one block per query. It ranks the maxima of the eight rows of a load: the r-th best
//         maximum is never above the r-th best score, and rarely below. With a rank so high that
//         many of the best rows share a load, it ranks single scores of a smaller sample. A radix
//         selection in two passes of eight bits.

inline constexpr unsigned kSampleKeysMax = 8'192;

struct ScoreSample {
  unsigned rows;   // at most the tile's columns, and kSampleKeysMax * group
  unsigned group;  // 8: rank the maxima of loads; 1: rank single scores
  float margin;    // twice the bound
};

cudaError_t LaunchSampleGate(const Pass& pass, const ScoreTile& tile, const ScoreSample& sample,
                             cudaStream_t stream);

// topk_fp16: reads a tile of fp16 scores once, at full bandwidth, and keeps the scores that reach
// the gate.
//   in   tile                         [batch][pitch]
//   in   pass.gates                   [batch], fp16 values
//   out  pass.hits, pass.hit_counts   appended; counts may exceed the capacity
// Work    one warp takes 1,024 scores of a query: four 16-byte loads per lane.
// Test    score - gate has a clear sign bit for a hit: 16 HADD2 and 8 LOP3 for 32 scores of a lane,
//         then one vote for 1,024. Equal gives +0 and passes, so ties are kept. Only a chunk with a
//         hit reads the mask, the end of the tile and the counter: one atomicAdd.
// Bound   L2 bandwidth: two bytes per score.
cudaError_t LaunchTopkFp16(const Pass& pass, const ScoreTile& tile, cudaStream_t stream);

}  // namespace simile::kernels

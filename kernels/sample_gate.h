#pragma once

#include "kernels/pass.h"
#include "kernels/score_tile.h"

// sample_gate: the gates of a pass, from the scores of a sample.
//   in   tile         its first sample.rows columns are the sample, so it needs no product
//   in   pass.terms   the rank of each query, its mask
//   out  pass.gates   [batch]  the rank-th best of the sample less the margin, rounded down to
//                              fp16; kLowestScore where too few rows of the sample pass
// Work    one block per query. It ranks the maxima of the eight rows of a load: the r-th best
//         maximum is never above the r-th best score, and rarely below. With a rank so high that
//         many of the best rows share a load, it ranks single scores of a smaller sample. A radix
//         selection in two passes of eight bits.

namespace simile::kernels {

inline constexpr unsigned kSampleKeysMax = 8'192;

struct ScoreSample {
  unsigned rows;   // at most the tile's columns, and kSampleKeysMax * group
  unsigned group;  // 8: rank the maxima of loads; 1: rank single scores
  float margin;    // twice the bound
};

cudaError_t LaunchSampleGate(const Pass& pass, const ScoreTile& tile, const ScoreSample& sample,
                             cudaStream_t stream);

}  // namespace simile::kernels

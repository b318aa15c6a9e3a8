#pragma once

#include "kernels/pass.h"
#include "kernels/score_tile.h"

// sample_gate: the gates of a pass, from the scores of a sample.
//   in   tile         its first sample.rows columns are the sample: no product of its own
//   in   pass.terms   the rank of each query, its mask
//   out  pass.gates   [batch]  the rank-th best of the sample less the margin, rounded down to a
//                              half; kLowestScore where the sample has too few rows that pass
// Work    one block a query. Ranked are the maxima of the eight rows of a load: the r-th best
//         maximum is never above the r-th best score, and rarely below. With a rank so high that
//         maxima would collide, single scores of a smaller sample. Two passes of eight bits.

namespace simile::kernels {

inline constexpr unsigned kSampleKeysMax = 8'192;

struct ScoreSample {
  unsigned rows;   // at most the tile's columns, and kSampleKeysMax * group
  unsigned group;  // 8: ranked by the maxima of loads; 1: by single scores
  float margin;    // twice the bound
};

cudaError_t LaunchSampleGate(const Pass& pass, const ScoreTile& tile, const ScoreSample& sample,
                             cudaStream_t stream);

}  // namespace simile::kernels

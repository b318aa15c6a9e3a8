#pragma once

#include "kernels/pass.h"
#include "kernels/score_tile.h"

// topk_fp16: reads a tile of fp16 scores once, at full bandwidth, and keeps those that reach the
// gate.
//   in   tile                         [batch][pitch]
//   in   pass.gates                   [batch], fp16 values
//   out  pass.hits, pass.hit_counts   appended; counts may exceed the capacity
// Work    one warp takes 1,024 scores of a query: four 16-byte loads per lane.
// Test    score - gate has a clear sign bit for a hit: 16 HADD2 and 8 LOP3 for 32 scores of a lane,
//         then one vote for 1,024. Equal gives +0 and passes, so ties are kept. Only a chunk with a
//         hit reads the mask, the end of the tile and the counter: one atomicAdd.
// Bound   L2 bandwidth: two bytes per score.

namespace simile::kernels {

cudaError_t LaunchTopkFp16(const Pass& pass, const ScoreTile& tile, cudaStream_t stream);

}  // namespace simile::kernels

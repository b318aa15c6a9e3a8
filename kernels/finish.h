#pragma once

#include "kernels/pass.h"

// finish: from hits to proven answers (docs/design/gpu-engine.md).
//   in   pass.hits, hit_counts, gates, terms; pass.rows for the canonical scores
//   out  pass.best      [batch][best_stride]  hits, best first
//        pass.proofs    [batch]               whether they are proven; else they are invalid
// Slots without a query (wanted 0) get an empty answer. Overwrites the hits.

namespace simile::kernels {

// The longest answer whose rows the query's own block rescores. More rows are one memory latency
// after another in one block, and shared by many blocks instead. On an H200 one block takes 9 to
// 18 us for 32 hits, where three or five launches take 10 to 23; for 100 hits it takes as long or
// longer (docs/benchmarks/gpu.md). Candidates were ordered by another sort then.
inline constexpr unsigned kHitsOfOneBlock = 32;

// One block per query: for short answers, where further launches would cost more than the work.
cudaError_t LaunchFinish(const Pass& pass, cudaStream_t stream);

// The same in three launches, five for upper bounds, so that many blocks share the canonical scores
// of one query.
//   expected      rows kept per query; only speed depends on it
//   in_row_order  canonical scores of all queries start with the first rows. Where candidates are
//                 spread over the rows, the L2 then has the rows that many queries read. Else the
//                 first queries come first.
cudaError_t LaunchFinishInSteps(const Pass& pass, unsigned expected, bool in_row_order,
                                cudaStream_t stream);

}  // namespace simile::kernels

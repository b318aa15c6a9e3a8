#pragma once

#include "kernels/pass.h"

namespace simile::kernels {

// finish: from hits to proven answers (docs/design/gpu-engine.md).
//   in   pass.hits, hit_counts, gates, terms; pass.rows for the canonical scores
//   out  pass.best      [batch][best_stride]  hits, best first
//        pass.proofs    [batch] whether the hits are proven; else they are invalid
// Slots without a query (wanted 0) get an empty answer. Overwrites the hits.

// The longest answer whose rows the query's own block rescores. In one block more rows would mean
// one memory latency after another. Several blocks share them instead. On an H200 one block takes 9
// to 18 us for 32 hits, and three or five launches take 10 to 23 us; for 100 hits one block takes
// as long or longer (docs/benchmarks/gpu.md). These times are from an earlier sort of the
// candidates.
inline constexpr unsigned kHitsOfOneBlock = 32;

// One block per query: for short answers, whose work costs less than further launches.
cudaError_t LaunchFinish(const Pass& pass, cudaStream_t stream);

// As LaunchFinish, in three launches, or five for upper bounds, so that many blocks share the
// canonical scores of one query.
//   expected      rows kept per query; only speed depends on it
//   in_row_order  canonical scores of all queries start with the first rows. If candidates are
//                 spread over the rows, the L2 then holds the rows that many queries read.
//                 Otherwise the first queries come first.
cudaError_t LaunchFinishInSteps(const Pass& pass, unsigned expected, bool in_row_order,
                                cudaStream_t stream);

// Canonical scores without a cheap pass: of the rows that a selective filter lists, of all rows
// when an answer could not be proven, and of the rows given to SegmentIndex::Score.

// A part of a scan: places first, first + 1, ... of a query's list, or positions if the query has
// no list. Ends earlier for a query with a shorter list.
struct ScanStep {
  unsigned first;
  unsigned count;
};

// canonical_scan: appends the keys of rows that pass and exceed the query's threshold.
//   in   pass.queries, terms, rows, row_of
//   in   thresholds       [batch]  0: every key exceeds it
//   out  pass.keys        [batch][capacity], appended
//   out  pass.hit_counts  [batch]  keys held
// REQUIRES: capacity - hit_counts[q] >= step.count, so that every key fits.
// Work    a warp takes two rows of a query at a time.
cudaError_t LaunchCanonicalScan(const Pass& pass, const ScanStep& step, const Key* thresholds,
                                cudaStream_t stream);

// select_keys: reduces every list to the `wanted` best keys, in order. Writes them to pass.best and
// their number to pass.proofs. Raises the threshold to the last key once there are `wanted` keys.
//   scratch  pass.hits, which is overwritten
cudaError_t LaunchSelectKeys(const Pass& pass, Key* thresholds, cudaStream_t stream);

// row_scores: the canonical score of every listed row with every query.
//   in   pass.rows, stride, queries, batch
//   in   list    [count] rows
//   out  scores  [batch][count]
cudaError_t LaunchRowScores(const Pass& pass, const unsigned* list, unsigned count, float* scores,
                            cudaStream_t stream);

}  // namespace simile::kernels

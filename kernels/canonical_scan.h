#pragma once

#include "kernels/pass.h"

// Canonical scores without a cheap pass: of the rows that a selective filter lists, of all rows
// where an answer could not be proven, and of the rows given to SegmentIndex::Score.

namespace simile::kernels {

// Part of a scan: places first, first + 1, ... of a query's list, or positions where it has none.
// It ends earlier for a query with a shorter list.
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

// select_keys: reduces every list to the wanted best, in order, writes them to pass.best, their
// number to pass.proofs, and raises the threshold to the last of them once there are that many.
//   scratch  pass.hits, which it overwrites
cudaError_t LaunchSelectKeys(const Pass& pass, Key* thresholds, cudaStream_t stream);

// row_scores: the canonical score of every listed row with every query.
//   in   pass.rows, stride, queries, batch
//   in   list    [count] rows
//   out  scores  [batch][count]
cudaError_t LaunchRowScores(const Pass& pass, const unsigned* list, unsigned count, float* scores,
                            cudaStream_t stream);

}  // namespace simile::kernels

#pragma once

#include "kernels/pass.h"

// Canonical scores without a cheap one before: of the few rows that a filter lists, of all rows
// where a cheap answer could not be proven, and of the rows that SegmentIndex::Score names.

namespace simile::kernels {

// Part of what a scan walks through: places first, first + 1, ... of a query's list, or positions
// where it has none. A query whose list ends earlier is done earlier.
struct ScanStep {
  unsigned first;
  unsigned count;
};

// canonical_scan: appends the keys above each query's threshold of the rows that pass.
//   in   pass.queries, terms, rows, row_of
//   in   thresholds       [batch]  0 lets all keys through
//   out  pass.keys        [batch][capacity], appended
//   out  pass.hit_counts  [batch]  keys held
// REQUIRES: capacity - hit_counts[q] >= step.count, so that nothing can be lost.
// Work    a warp takes two rows of a query at a time.
cudaError_t LaunchCanonicalScan(const Pass& pass, const ScanStep& step, const Key* thresholds,
                                cudaStream_t stream);

// select_keys: cuts every list to the wanted best, in order, raises the threshold to the last of
// them once there are as many, and writes them to pass.best.
//   scratch  pass.hits, which it overwrites
cudaError_t LaunchSelectKeys(const Pass& pass, Key* thresholds, cudaStream_t stream);

// row_scores: the canonical score of every listed row with every query.
//   in   pass.rows, stride, queries, batch
//   in   list    [count] rows
//   out  scores  [batch][count]
cudaError_t LaunchRowScores(const Pass& pass, const unsigned* list, unsigned count, float* scores,
                            cudaStream_t stream);

}  // namespace simile::kernels

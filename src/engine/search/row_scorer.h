#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/search/call_context.h"
#include "engine/search/execution.h"
#include "engine/search/resolved_query.h"
#include "engine/search/segment_search.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Forms the score of single rows for one query, whatever its scoring: the score that ranks them.
// Borrows all it is made from; used by one thread.
class RowScorer {
 public:
  //   vectors    [query.vector_count, dim]  the query's own
  //   execution  what scoring costs is added to it
  RowScorer(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
            SegmentSearch& search, const CallContext& context, Execution& execution)
      : query_(query),
        vectors_(vectors),
        snapshot_(snapshot),
        search_(search),
        context_(context),
        execution_(execution) {}

  // The best k of these rows that reach the query's threshold, best first. Counts rows_rescored.
  //   rows  ascending and distinct; the caller has applied mask and exclusions
  // Errors: the backend's and CallContext's; rows not yet scored are then neither scored nor
  // counted. Throws std::bad_alloc. Cost: vectors * rows canonical scores.
  absl::StatusOr<std::vector<Hit>> BestOf(std::span<const Row> rows, std::size_t k);
  // The same of all rows that pass the mask (null: all) and the exclusions. Counts rows_scanned.
  absl::StatusOr<std::vector<Hit>> BestOfAll(const RowMask* mask, std::size_t k);

 private:
  struct Best;
  // Rows scored together.
  std::size_t RowsAtOnce() const;
  //   counter  of execution_.cost, raised by the rows scored
  absl::Status Offer(std::span<const Row> rows, std::uint64_t& counter, Best& best);
  float Combine(std::span<const float> similarities) const;

  const ResolvedQuery& query_;
  const MatrixView vectors_;
  const Snapshot& snapshot_;
  SegmentSearch& search_;
  const CallContext& context_;
  Execution& execution_;
  std::vector<float> scores_;        // [vectors, rows scored together]
  std::vector<float> similarities_;  // [vectors], of one row
};

}  // namespace simile::engine

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/hits.h"
#include "simile/matrix_view.h"
#include "simile/query.h"
#include "simile/served_by.h"

namespace simile {

// The rows a segment is built from. The backend may keep the view as long as it keeps the owner.
struct SegmentRows {
  MatrixView rows;  // [row_count, dim] fp32, unit length for cosine, finite, norms in 2^-60..2^60
  std::shared_ptr<const void> owner;  // keeps rows.data() alive
  Metric metric = Metric::kCosine;
  Row first_row = 0;  // the caller's number of rows[0]
};

// What a segment takes beyond the fp32 rows that the snapshot holds anyway.
struct ResidentPlan {
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;
};

// Ranks rows against queries. Immutable once built. Search may be called from any thread (the
// dispatch thread answers while a fresh segment is verified); a backend whose device takes one
// batch at a time lets the second caller wait. A Search may itself use many threads.
class SegmentIndex {
 public:
  virtual ~SegmentIndex() = default;

  virtual std::size_t row_count() const = 0;
  virtual std::size_t dim() const = 0;

  // How far the index is built, 0 .. 1. It answers all the while, below 1 by a slower road.
  // Errors: why it never will be, in words for an operator; it goes on answering by the slower
  // road.
  virtual absl::StatusOr<double> Built() const { return 1.0; }

  // Who answers in the stead of the backend that made it, and why; null as long as that one does.
  // A single search that went elsewhere says so in its result.
  virtual StandIn stand_in() const { return nullptr; }

  // What it takes now, where that is not what Backend::Plan said.
  virtual std::optional<ResidentPlan> Resident() const { return std::nullopt; }

  // Finds the best k passing rows for each query, best first by RankKey.
  //   batch.queries  [batch, dim]  row-major fp32, unit length for cosine
  //   batch.specs    [batch]       k, mask, exclusions and threshold of each query
  //   result         hits of each query: the caller's row and the canonical score; shorter than k
  //                  when fewer rows pass
  // REQUIRES: 1 <= k for each query (callers ask for limits.k_max at most, the engine's own rounds
  //           for up to 10,000), dim equal to the segment's, masks that cover every row of it.
  // Errors: kResourceExhausted when the workspace cannot hold the batch; kUnavailable after a
  //         device fault.
  virtual absl::Status Search(const SearchBatch& batch, SearchResult& result) const = 0;

  // Forms the canonical scores of some rows with some vectors: of what Search has proposed where
  // several vectors make one score, and of rows with each other.
  //   queries  [query_count, dim]  row-major fp32, as for Search
  //   rows     [n]                 the caller's numbers
  //   scores   [query_count, n]    written; scores[q * n + i] is that of rows[i] with query q
  // REQUIRES: rows are ascending and distinct, all of this segment.
  // Errors: as Search. Cost: n * query_count canonical scores; every row is read once.
  virtual absl::Status Score(MatrixView queries, std::span<const Row> rows,
                             std::span<float> scores) const = 0;

  // As Score, and tells who formed the scores in the stead of the backend that made the segment;
  // null when nobody did.
  virtual absl::Status ScoreAndTell(MatrixView queries, std::span<const Row> rows,
                                    std::span<float> scores, StandIn& stand_in) const {
    stand_in = nullptr;
    return Score(queries, rows, scores);
  }
};

}  // namespace simile

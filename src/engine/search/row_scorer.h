#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/status.h>

#include "certificate/top_k.h"
#include "engine/search/execution.h"
#include "engine/search/resolved_query.h"
#include "engine/search/segment_search.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// The engine in a receipt when every row was scored without a search.
inline constexpr std::string_view kEveryRow = "every-row";

// Long work of a query is done in pieces. Between pieces its deadline is checked and other queries
// run. A piece forms canonical scores with vectors * rows * dim products: 2 to 3 ms on two cores
// when rows are gathered one by one (estimated from 80 ns a row of 384 dimensions).
inline constexpr std::size_t kProductsOfPiece = 8U << 20;
// The most scores of a piece: 4 MiB.
inline constexpr std::size_t kScoresOfPiece = 1U << 20;

// The number of rows to score with vector_count vectors in one piece. At least one.
inline std::size_t RowsOfPiece(std::size_t dim, std::size_t vector_count) {
  const std::size_t products_of_row = std::max<std::size_t>(1, dim * vector_count);
  return std::max<std::size_t>(
      1, std::min(kProductsOfPiece / products_of_row, kScoresOfPiece / vector_count));
}

// Finds the best of many rows by their scores with one query, a piece at a time, for every kind of
// Scoring. Borrows its arguments; used by one thread.
class RowScorer {
 public:
  //   vectors    [query.vector_count, dim]  the query's own
  //   execution  the cost of scoring is added to it
  RowScorer(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
            SegmentSearch& search, Execution& execution)
      : query_(query),
        vectors_(vectors),
        snapshot_(snapshot),
        search_(search),
        execution_(execution) {}

  // Starts to find the best k of these rows, among the rows that reach the query's threshold.
  // Counts rows_rescored.
  //   rows  ascending and distinct; the caller has applied mask and exclusions
  // Throws std::bad_alloc, as do all methods.
  void Begin(std::vector<Row> rows, std::size_t k);
  // As Begin, for all rows that pass the mask (null: all) and the exclusions. Counts rows_scanned.
  //   mask  borrowed until all rows are scored
  void BeginAll(const RowMask* mask, std::size_t k);

  // After Begin or BeginAll: gives every row to `offer`, without the threshold. TakeHits then
  // returns nothing.
  using Offer = std::function<void(RankKey)>;
  void OfferTo(Offer offer) { offer_ = std::move(offer); }

  bool done() const { return next_row_ == end_row_; }
  // Scores the next rows: vectors * rows canonical scores, some milliseconds of work.
  // Errors: the backend's; then the rows of the piece are not counted, and scoring cannot continue.
  // REQUIRES: not done.
  absl::Status ScorePiece();
  // Best first. REQUIRES: done; once after each Begin.
  std::vector<Hit> TakeHits();

 private:
  void Restart(std::size_t k, std::size_t offers_max);
  void ReadPassingRows(std::size_t count);
  float Combine(std::span<const float> similarities) const;

  const ResolvedQuery& query_;
  const MatrixView vectors_;
  const Snapshot& snapshot_;
  SegmentSearch& search_;
  Execution& execution_;

  // The rows to score: given_[next_row_ .. end_row_), or the rows of the snapshot that pass.
  bool all_ = false;
  std::vector<Row> given_;
  const RowMask* mask_ = nullptr;
  std::span<const Row> excluded_;  // exclusions from next_row_ on
  std::size_t next_row_ = 0;
  std::size_t end_row_ = 0;

  std::vector<Row> piece_;           // rows that are scored together
  std::vector<float> scores_;        // [vectors, rows scored together]
  std::vector<float> similarities_;  // [vectors], of one row
  std::vector<RankKey> best_buffer_;
  certificate::TopK best_;
  Offer offer_;  // empty: rows go to best_
};

}  // namespace simile::engine

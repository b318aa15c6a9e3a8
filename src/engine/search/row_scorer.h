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

// Long work of a query is done in pieces, between which its deadline is checked and other queries
// run. A piece forms canonical scores: vectors * rows * dim products, 2 to 3 ms of them on two
// cores where rows are gathered one by one (estimated from 80 ns a row of 384 dimensions).
inline constexpr std::size_t kProductsOfPiece = 8U << 20;
// And no more scores than this, which takes 4 MiB.
inline constexpr std::size_t kScoresOfPiece = 1U << 20;

// How many rows to score with so many vectors in one piece. At least one.
inline std::size_t RowsOfPiece(std::size_t dim, std::size_t vector_count) {
  const std::size_t products_of_row = std::max<std::size_t>(1, dim * vector_count);
  return std::max<std::size_t>(
      1, std::min(kProductsOfPiece / products_of_row, kScoresOfPiece / vector_count));
}

// Finds the best of many rows by their scores with one query, whatever its scoring, a piece at a
// time: the score is the one that ranks them. Borrows all it is made from; used by one thread.
class RowScorer {
 public:
  //   vectors    [query.vector_count, dim]  the query's own
  //   execution  what scoring costs is added to it
  RowScorer(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
            SegmentSearch& search, Execution& execution)
      : query_(query),
        vectors_(vectors),
        snapshot_(snapshot),
        search_(search),
        execution_(execution) {}

  // Starts to find the best k of these rows that reach the query's threshold. Counts rows_rescored.
  //   rows  ascending and distinct; the caller has applied mask and exclusions
  // Throws std::bad_alloc, as do all methods.
  void Begin(std::vector<Row> rows, std::size_t k);
  // The same of all rows that pass the mask (null: all) and the exclusions. Counts rows_scanned.
  //   mask  borrowed until all are scored
  void BeginAll(const RowMask* mask, std::size_t k);

  // Gives the rows of the Begin or BeginAll just called to `offer` instead, threshold or not:
  // TakeHits then returns none.
  using Offer = std::function<void(RankKey)>;
  void OfferTo(Offer offer) { offer_ = std::move(offer); }

  bool done() const { return next_row_ == end_row_; }
  // Scores the next rows: vectors * rows canonical scores, some milliseconds of work.
  // Errors: the backend's; these rows are then not counted, and scoring cannot go on.
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

  // The rows to score: given_[next_row_ .. end_row_), or those of the snapshot that pass.
  bool all_ = false;
  std::vector<Row> given_;
  const RowMask* mask_ = nullptr;
  std::span<const Row> excluded_;  // those not yet passed
  std::size_t next_row_ = 0;
  std::size_t end_row_ = 0;

  std::vector<Row> piece_;           // of all rows, those scored together
  std::vector<float> scores_;        // [vectors, rows scored together]
  std::vector<float> similarities_;  // [vectors], of one row
  std::vector<RankKey> best_buffer_;
  certificate::TopK best_;
  Offer offer_;  // empty: best_'s
};

}  // namespace simile::engine

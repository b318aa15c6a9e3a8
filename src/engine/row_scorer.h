#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/patience.h"
#include "engine/question.h"
#include "engine/segment_search.h"
#include "engine/snapshot.h"

namespace simile::engine {

// Scores single rows for one question, whatever its scoring: the score that decides. Borrows all it
// is made from; used by one thread.
class RowScorer {
 public:
  //   vectors  [question.vector_count, dim]  the question's own
  RowScorer(const Question& question, MatrixView vectors, const Snapshot& snapshot,
            SegmentSearch& search, const Patience& patience)
      : question_(question),
        vectors_(vectors),
        snapshot_(snapshot),
        search_(search),
        patience_(patience) {}

  // The best k of these rows that reach the question's threshold, best first.
  //   rows  ascending and distinct; masks and exclusions are the caller's
  // Errors: the backend's, and the task's patience's. Throws std::bad_alloc. Cost: vectors * rows
  // canonical scores.
  absl::StatusOr<std::vector<Hit>> BestOf(std::span<const Row> rows, std::size_t k);
  // The same of all rows that pass the mask (null: all) and the question's exclusions.
  absl::StatusOr<std::vector<Hit>> BestOfAll(const RowMask* mask, std::size_t k);

  // Rows scored so far, those of BestOf counted as rescored.
  const QueryCost& cost() const { return cost_; }

 private:
  struct Best;
  std::size_t RowsAtOnce() const;
  absl::Status Offer(std::span<const Row> rows, Best& best);
  float Combine(std::span<const float> similarities) const;

  const Question& question_;
  const MatrixView vectors_;
  const Snapshot& snapshot_;
  SegmentSearch& search_;
  const Patience& patience_;
  QueryCost cost_;
  std::vector<float> scores_;        // [vectors, rows of a piece]
  std::vector<float> similarities_;  // [vectors], of one row
};

}  // namespace simile::engine

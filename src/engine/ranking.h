#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <absl/status/statusor.h>

#include "certificate/combined_score.h"
#include "engine/engine_names.h"
#include "engine/question.h"
#include "engine/round.h"
#include "engine/row_scorer.h"
#include "simile/hits.h"

namespace simile::engine {

// Finds the exact best rows for one question, in as many rounds of searches as that takes: one for
// a question with one vector, mostly one for several. Where several vectors make a score, each
// probe's list of best rows proposes candidates, the candidates get their scores, and a bound on
// what any other row can reach says whether the k best are among them. If not, longer lists are
// asked for, and at last every row is scored. Borrows all it is made from.
class Ranking {
 public:
  //   vectors  [question.vector_count, dim]  the question's own
  // Throws std::bad_alloc, as do all methods.
  Ranking(const Question& question, MatrixView vectors, const Snapshot& snapshot,
          SegmentSearch& search, const Patience& patience);

  // Starts to look for the best k rows that pass the mask (null: all), the question's exclusions
  // and its threshold.
  void Begin(std::uint32_t k, const RowMask* mask);
  // Adds what must be searched for next; perhaps nothing. Take follows.
  void Ask(Round& round);
  // Takes in the results of that round. Whether hits() now stand.
  // Errors: the backend's, and the task's patience's.
  absl::StatusOr<bool> Take(const SearchResult& result);

  // Best first; fewer than k when fewer rows pass.
  const std::vector<Hit>& hits() const { return hits_; }

  // The best k rows that pass another mask (null: all), without a round: every one of them is
  // scored.
  absl::StatusOr<std::vector<Hit>> BestAtOnce(const RowMask* mask, std::size_t k);

  // Of all rounds so far.
  QueryCost cost() const;
  // What answered, in all rounds so far.
  const EngineNames& engines() const { return engines_; }

 private:
  void MakeProbes(MatrixView vectors, const Snapshot& snapshot);
  std::size_t probe_count() const { return probes_.size() / padded_dim_; }
  void CollectCandidates(const SearchResult& result);
  // Whether no row that was not proposed can be among the k best.
  bool Certain(const SearchResult& result) const;
  float CeilingOfOthers(const SearchResult& result) const;
  void AskForMore();

  const Question& question_;
  const std::size_t row_count_;
  const std::size_t padded_dim_;
  RowScorer scorer_;
  std::vector<float> probes_;  // [probes, padded_dim]: what is searched for; none: rows are scored
  certificate::SumBound sum_bound_;  // of Scoring::kSumScores

  std::uint32_t k_ = 0;
  const RowMask* mask_ = nullptr;
  std::uint32_t list_k_ = 0;     // rows asked of each probe; 0: every row is scored instead
  std::size_t rounds_ = 0;       // taken in so far
  std::size_t first_place_ = 0;  // of the probes' searches in the round
  std::vector<Row> candidates_;
  std::vector<Hit> hits_;
  QueryCost cost_;
  EngineNames engines_;
};

}  // namespace simile::engine

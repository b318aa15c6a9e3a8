#pragma once

#include <optional>

#include <absl/status/statusor.h>

#include "engine/group_hits.h"
#include "engine/question.h"
#include "engine/ranking.h"
#include "engine/round.h"
#include "engine/snapshot.h"

namespace simile::engine {

// One question that a single search does not answer, on its way from ranking to answer. Borrows
// what it is made from.
class Refinement {
 public:
  //   vectors  [question.vector_count, dim]  the question's own
  // REQUIRES: the question is not plain. Throws std::bad_alloc, as do all methods.
  //   patience  asked in the midst of long work
  Refinement(const Question& question, MatrixView vectors, const Snapshot& snapshot,
             SegmentSearch& search, const Patience& patience);

  // Adds the searches of the next round; perhaps none. Take follows.
  void Ask(Round& round);
  // Takes in the results of that round. Whether answer() now stands.
  // Errors: the backend's, and the task's patience's.
  absl::StatusOr<bool> Take(const SearchResult& result);

  QuestionAnswer& answer() { return answer_; }
  QueryCost cost() const;
  const EngineNames& engines() const { return ranking_.engines(); }

 private:
  absl::Status Conclude();

  const Question& question_;
  const Snapshot& snapshot_;
  SegmentSearch& search_;
  const Patience patience_;
  Ranking ranking_;
  std::optional<GroupHits> groups_;
  bool ranking_is_under_way_ = false;
  QueryCost comparisons_;  // of candidates with each other
  QuestionAnswer answer_;
};

}  // namespace simile::engine

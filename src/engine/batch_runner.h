#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <absl/status/status.h>

#include "engine/engine_names.h"
#include "engine/refinement.h"
#include "engine/round.h"
#include "engine/search_task.h"
#include "engine/segment_search.h"
#include "simile/clock.h"
#include "simile/hits.h"
#include "simile/query.h"

namespace simile::engine {

// The dispatch thread's workspace: makes one batch of several tasks' questions and answers it.
// Plain questions are answered by the first search, which all share; those that need more go on
// together, round by round, until the last has its answer. All of the workspace is kept from batch
// to batch, so that a warm pass of plain questions allocates only the answers it hands out.
class BatchRunner {
 public:
  //   clock  borrowed
  explicit BatchRunner(const Clock& clock) : clock_(clock) {}

  // Tells that a task of the batch has its answer while others go on: the answer may be taken out
  // of its place, and the task.
  using Early = std::function<void(std::size_t task)>;

  // Answers the tasks from their snapshot; on each receipt stand the rows scanned and rescored,
  // what answered, and who, where that was not the backend for all of it; the rest is the
  // executor's.
  //   answers  overwritten, one a task; after an error those of tasks not told of are unspecified
  //   early    not called for tasks that stand when Run returns
  // REQUIRES: at least one task; all pin the same snapshot.
  // Errors: kResourceExhausted when there is no memory for the batch; the backend's own. A single
  //         task's, in its place: those of its rounds, and of Patience.
  absl::Status Run(std::span<const std::unique_ptr<SearchTask>> tasks,
                   std::vector<absl::StatusOr<SearchAnswer>>& answers, const Early& early);

  // Who answered the first search of the last batch in the stead of the backend; null when nobody
  // did.
  const StandIn& stand_in() const { return first_stand_in_; }

 private:
  // A question that goes on after the first search, and whose it is.
  struct Pending {
    std::size_t task = 0;
    std::size_t question = 0;  // of the task
    std::unique_ptr<Refinement> refinement;
    bool asked = false;  // in the round under way
    bool done = false;
  };

  absl::Status RunRounds(std::span<const std::unique_ptr<SearchTask>> tasks,
                         std::vector<absl::StatusOr<SearchAnswer>>& answers, const Early& early);
  // The first search: every plain question's, and what the others ask for.
  absl::Status FirstRound(std::span<const std::unique_ptr<SearchTask>> tasks);
  absl::Status NextRound(const Snapshot& snapshot);
  // Writes down that somebody else has answered a part of a task.
  static void Note(const StandIn& stand_in, absl::StatusOr<SearchAnswer>& answer);
  void TakePlain(std::span<const std::unique_ptr<SearchTask>> tasks,
                 std::vector<absl::StatusOr<SearchAnswer>>& answers);
  void TakePending(std::vector<absl::StatusOr<SearchAnswer>>& answers);
  void TakeOne(Pending& pending, absl::StatusOr<SearchAnswer>& answer);
  // Tells of the tasks that have nothing pending any more.
  void TellOfThoseThatStand(const Early& early);

  const Clock& clock_;
  SegmentSearch search_;
  Round round_;
  std::vector<QuerySpec> specs_;  // of a lone task whose matrix is searched where it is
  std::vector<Pending> pending_;
  std::vector<char> untold_;          // [tasks]
  std::vector<EngineNames> engines_;  // [tasks]
  StandIn first_stand_in_;            // of the first search
  StandIn stand_in_;                  // of the latest search
  SearchResult result_;
};

}  // namespace simile::engine

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "engine/search/refinement.h"
#include "engine/search/search_batch_builder.h"
#include "engine/search/search_task.h"
#include "engine/search/segment_search.h"
#include "simile/clock.h"
#include "simile/hits.h"
#include "simile/query.h"

namespace simile::engine {

// The answers to a batch of tasks.
struct BatchAnswers {
  std::vector<absl::StatusOr<std::vector<QueryResult>>> tasks;  // [tasks][queries]
  FallbackBackend fallback;  // that answered the first search; null when the backend did
};

// The dispatch thread's workspace: makes one batch of several tasks' queries and answers it. Plain
// queries are answered by the first search, which all share; the others continue together, round by
// round, until the last has its answer. The workspace is kept from batch to batch, so that a warm
// pass of plain queries allocates only the answers.
class BatchRunner {
 public:
  //   clock  borrowed
  explicit BatchRunner(const Clock& clock) : clock_(clock) {}

  // Reports that a task is complete while others continue: the callee may move its answer and the
  // task out of their places.
  using OnCompleted = std::function<void(std::size_t task)>;

  // Answers the tasks from their snapshot.
  //   answers       overwritten; after an error, answers of tasks not reported are unspecified
  //   on_completed  not called for tasks that the last round completes
  // REQUIRES: at least one task; all pin the same snapshot.
  // Errors: kResourceExhausted when there is no memory for the batch; the backend's own. A task's
  //         answer may be an error of its own: of its rounds, or CallContext's.
  absl::Status Run(std::span<const std::unique_ptr<SearchTask>> tasks, BatchAnswers& answers,
                   const OnCompleted& on_completed);

 private:
  // A query that needs more than the first search.
  struct Pending {
    std::size_t task = 0;   // of the batch
    std::size_t query = 0;  // of the task
    std::unique_ptr<Refinement> refinement;
    bool in_round = false;  // its searches are part of the round under way
    bool done = false;
  };

  absl::Status RunRounds(std::span<const std::unique_ptr<SearchTask>> tasks, BatchAnswers& answers,
                         const OnCompleted& on_completed);
  // The first search: of every plain query, and the first of the others.
  absl::Status RunFirstRound(std::span<const std::unique_ptr<SearchTask>> tasks);
  absl::Status RunNextRound(const Snapshot& snapshot);
  // Runs the searches that the builder holds, if any, into result_.
  absl::Status RunBatch(const Snapshot& snapshot);
  void ReadPlainResults(std::span<const std::unique_ptr<SearchTask>> tasks, BatchAnswers& answers);
  void ReadPendingResults(BatchAnswers& answers);
  void ReadPendingResult(Pending& pending, absl::StatusOr<std::vector<QueryResult>>& answer);
  // Reports the tasks that have no pending query any more.
  void NotifyCompleted(const OnCompleted& on_completed);

  const Clock& clock_;
  SegmentSearch search_;
  SearchBatchBuilder builder_;
  std::vector<QuerySpec> specs_;  // of a lone task, whose matrix is searched without a copy
  std::vector<Pending> pending_;
  std::vector<char> notified_;  // [tasks]
  SearchResult result_;
};

}  // namespace simile::engine

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/matrix.h"
#include "engine/question.h"
#include "engine/snapshot.h"
#include "observe/receipt.h"
#include "simile/clock.h"

namespace simile::engine {

struct SearchAnswer {
  std::vector<QuestionAnswer> answers;  // [questions]
  observe::Receipt receipt;
};

// What a call asks of the engine. All questions of a call are answered from one snapshot.
struct SearchTask {
  SnapshotPtr snapshot;
  std::vector<Question> questions;
  // [vectors of all questions, one after the other; dim] fp32, padded; unit length for cosine
  data::Matrix vectors;
  Clock::TimePoint arrived_at;
  Clock::TimePoint deadline;  // TimePoint::max() for none
  // Asked on the dispatch thread just before the pass, and between the rounds of questions that
  // need several: a call that is gone costs no compute. May be empty.
  std::function<bool()> cancelled;
  // Called exactly once, from the completion thread, never from Submit; a task that Submit refused
  // is dropped without the call. May Submit, must not Stop or Drain.
  // Errors: kDeadlineExceeded (expired in the queue, where nothing was computed, or between two
  //         rounds), kCancelled, kUnavailable when the executor stops, and the backend's own.
  std::function<void(absl::StatusOr<SearchAnswer>)> done;
};

// Counts since start, for metrics. Read from any thread.
struct ExecutorCounts {
  std::uint64_t batches = 0;
  std::uint64_t queries = 0;  // answered by a pass, or failed in one
  std::uint64_t expired = 0;  // queries whose deadline passed in the queue
  std::uint64_t cancelled = 0;
  std::uint64_t rejected = 0;     // queries refused because the queue was full
  std::uint64_t queue_depth = 0;  // queries waiting now
};

// The queue in front of a backend. One dispatch thread takes what waits, forms a batch by
// batch_policy.h, runs it on the snapshot's segments and hands answers to a completion thread, so
// that building a reply never holds up the next pass. gRPC threads only Submit. The completion
// thread also answers what expires in the queue, at its deadline and not after the pass that holds
// it up. When completions fall queue_queries_max queries behind, passes wait for them: then the
// queue fills and Submit refuses, so nothing here grows without bound.
class Executor {
 public:
  struct Options {
    std::uint32_t queue_queries_max = 1'024;
    std::uint32_t batch_queries_max = 1'024;
  };
  // Called after each pass from the dispatch thread, before its answers are handed out, for
  // histograms. The report is only valid during the call.
  struct BatchReport {
    std::uint32_t batch_size = 0;
    std::uint64_t compute_us = 0;
    std::vector<std::uint64_t> queue_us;  // one a task
  };
  using Observer = std::function<void(const BatchReport&)>;

  // info and reason go onto every receipt. clock is borrowed for the executor's life. observer may
  // be empty.
  Executor(Options options, BackendInfo info, std::string reason, const Clock& clock,
           Observer observer);
  ~Executor();  // stops as Stop()

  // Queues a task, or refuses it without keeping it.
  // REQUIRES: the task has a snapshot, at least one question, their vectors, and `done`.
  // Errors: kResourceExhausted when the queue is full (with how many wait); kUnavailable after
  // Stop or Drain.
  absl::Status Submit(std::unique_ptr<SearchTask> task);
  // Answers what waits with kUnavailable, finishes the pass under way, joins. Idempotent; cuts a
  // Drain short.
  void Stop();
  // Refuses new tasks, answers all that wait, joins. Idempotent.
  void Drain();
  ExecutorCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::engine

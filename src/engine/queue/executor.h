#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "engine/queue/batch_policy.h"
#include "engine/queue/drain_rate.h"
#include "engine/search/batch_runner.h"
#include "engine/search/search_task.h"
#include "simile/backend.h"
#include "simile/clock.h"
#include "simile/served_by.h"

namespace simile::engine {

// Counts since start, for metrics. Read from any thread.
struct ExecutorCounts {
  std::uint64_t batches = 0;
  std::uint64_t queries = 0;  // answered by a pass, or failed in one
  std::uint64_t expired = 0;  // queries whose deadline passed in the queue
  std::uint64_t cancelled = 0;
  std::uint64_t rejected = 0;     // queries refused because the queue was full
  std::uint64_t queue_depth = 0;  // queries waiting now; one of several vectors counts as many
};

// The queue in front of a backend. One dispatch thread takes what waits, forms a batch by
// batch_policy.h, runs it on the snapshot's segments and hands answers to a completion thread, so
// that building a reply never holds up the next pass. gRPC threads only Submit. The completion
// thread also answers what expires in the queue, at its deadline and not after the pass that delays
// it. When completions fall queue_queries_max queries behind, passes wait for them: then the queue
// fills and Submit refuses, so nothing here grows without bound.
class Executor {
 public:
  struct Options {
    std::uint32_t queue_queries_max = 1'024;
    std::uint32_t batch_queries_max = 1'024;
  };
  // Called after each batch from the dispatch thread, before the last of its answers are handed
  // out, for histograms. The report is only valid during the call.
  struct BatchReport {
    std::string_view backend;  // that ran its first search: "gpu", or the fallback backend
    std::uint32_t batch_size = 0;
    std::uint64_t compute_us = 0;
    std::vector<std::uint64_t> queue_us;  // one a task
  };
  using Observer = std::function<void(const BatchReport&)>;
  // Backend::device_memory, read once a batch.
  using ReadDeviceMemory = std::function<std::vector<DeviceMemory>()>;

  //   served_by  for the receipt of every answer without a fallback backend
  //   clock      borrowed for the executor's life
  //   observer   may be empty
  //   read       may be empty: there is no device
  Executor(Options options, ServedBy served_by, const Clock& clock, Observer observer,
           ReadDeviceMemory read = {});
  ~Executor();  // stops as Stop()

  // Queues a task, or refuses it without keeping it.
  // REQUIRES: the task has a snapshot, at least one query, their vectors, and `done`.
  // Errors: QUEUE_FULL (with how many wait, and when the queue as it is should be empty); STOPPING
  //         after Stop or Drain.
  absl::Status Submit(std::unique_ptr<SearchTask> task);
  // Answers what waits with STOPPING, finishes the pass under way, joins. Idempotent; cuts a
  // Drain short.
  void Stop();
  // Refuses new tasks, answers all that wait, joins. Idempotent.
  void Drain();
  ExecutorCounts counts() const;

 private:
  using TaskPtr = std::unique_ptr<SearchTask>;
  // A task that has its answer or its error, for the completion thread.
  struct Finished {
    TaskPtr task;
    absl::StatusOr<SearchAnswer> answer;
  };
  // What happens with the tasks that wait; only ever raised.
  enum class Phase : std::uint8_t { kRunning, kDraining, kStopping };
  // Enters the phase and returns when both threads have ended.
  void End(Phase phase);

  // On the dispatch thread
  void Dispatch();
  bool FormBatch();  // waits for tasks and moves them to batch_; false when there will be no more
  void DropCancelled();
  void RunBatch();
  void ReadDeviceBytes();
  void CountBatch(Clock::TimePoint started_at);
  // The answer to a task of the batch, its receipt included: nothing else fills a receipt.
  absl::StatusOr<SearchAnswer> BuildAnswer(std::size_t index, std::uint64_t compute_us);

  // On the completion thread
  void Complete();

  // REQUIRES of these: mutex_ is held.
  void ExpireWaiting(Clock::TimePoint now);
  void StopWaiting();
  absl::Status QueueFull(std::uint32_t query_count) const;
  void Finish(TaskPtr task, absl::StatusOr<SearchAnswer> answer);

  const Options options_;
  const std::shared_ptr<const ServedBy> served_by_;
  const Clock& clock_;
  const Observer observer_;
  const ReadDeviceMemory read_device_memory_;

  mutable std::mutex mutex_;               // guards what follows, up to drain_rate_
  std::condition_variable dispatch_wake_;  // work arrived, completions caught up, the phase rose
  std::condition_variable complete_wake_;  // something finished, a nearer deadline arrived, the end
  std::vector<TaskPtr> waiting_;           // oldest first
  std::vector<Finished> finished_;         // their `done` is not called yet
  // Searches of finished_ and of the tasks whose `done` the completion thread is calling.
  std::uint64_t completing_queries_ = 0;
  // No waiting task expires before this. Exact after ExpireWaiting; a task that leaves the queue
  // only makes it too early, which costs one more call.
  Clock::TimePoint next_expiry_ = Clock::TimePoint::max();
  Phase phase_ = Phase::kRunning;
  bool dispatch_ended_ = false;
  ExecutorCounts counts_;
  std::uint32_t running_searches_ = 0;  // of the batch under way
  DrainRate drain_rate_;

  // Used by the dispatch thread only, kept from batch to batch.
  std::vector<TaskPtr> batch_;
  std::vector<Waiting> waiting_view_;
  std::vector<std::size_t> taken_;
  BatchRunner runner_;
  BatchAnswers answers_;  // to the tasks of batch_
  BatchReport report_;
  std::uint64_t device_bytes_ = 0;
  std::uint64_t device_bytes_peak_ = 0;

  std::mutex join_mutex_;   // held while joining, so that every End returns after the end
  std::thread dispatcher_;  // last: the threads use all of the above
  std::thread completer_;
};

}  // namespace simile::engine

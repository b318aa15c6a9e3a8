#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

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
  // Errors: kResourceExhausted when the queue is full (with how many wait); kUnavailable after
  //         Stop or Drain.
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

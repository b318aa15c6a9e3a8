#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <absl/status/statusor.h>

#include "engine/queue/cost_estimator.h"
#include "engine/queue/schedule.h"
#include "engine/search/search_task.h"
#include "simile/clock.h"
#include "simile/query.h"

namespace simile::engine {

// A task in the executor, from Submit until its answer is handed out. Has space for all that it
// will need on its way: from Submit on nothing that happens to it may lack memory. Destroyed
// without the executor's mutex, since its stop callback may just wait for that.
struct QueuedTask {
  std::shared_ptr<SearchTask> task;  // shared with the pass that answers it
  std::uint64_t id = 0;              // in order of arrival
  Schedule::Request request;
  std::uint64_t bytes = 0;  // that it holds
  bool large = false;       // takes much of the queue, so it waits beside it (Admit)
  bool large_reply = false;
  bool begun = false;  // a slice of it runs or has run
  unsigned slices_under_way = 0;
  bool wait_reported = false;       // to the observer
  Clock::TimePoint began_at;        // its first slice
  Clock::Duration compute{};        // all its slices
  Clock::TimePoint computed_until;  // its last slice, which another one may overlap
  DeviceTime device_time;           // in them, where it asks for it
  TaskProgress progress;
  absl::StatusOr<SearchAnswer> answer;  // once it is finished
  std::unique_ptr<QueuedTask> next;     // of its TaskList
  // Last: it calls the executor as soon as the task's caller is gone.
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;
};

// Tasks in their order, linked through themselves: to add one takes no memory. Not thread-safe.
class TaskList {
 public:
  TaskList() = default;
  ~TaskList() {
    while (!empty()) TakeFirst();  // each alone: a long list would end in as deep a recursion
  }
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;

  bool empty() const { return first_ == nullptr; }
  std::uint64_t bytes() const { return bytes_; }  // of the tasks, as the queue counts them
  void Add(std::unique_ptr<QueuedTask> task) {
    QueuedTask* const added = task.get();
    (first_ == nullptr ? first_ : last_->next) = std::move(task);
    last_ = added;
    bytes_ += added->bytes;
  }
  // REQUIRES: not empty.
  std::unique_ptr<QueuedTask> TakeFirst() {
    std::unique_ptr<QueuedTask> task = std::move(first_);
    first_ = std::move(task->next);
    bytes_ -= task->bytes;
    return task;
  }

 private:
  std::unique_ptr<QueuedTask> first_;
  QueuedTask* last_ = nullptr;  // unless it is empty
  std::uint64_t bytes_ = 0;
};

// Whether one search for each query does not answer a task.
bool IsHard(const SearchTask& task);
Lane ChooseLane(const SearchTask& task);

// What a task counts as in the queue and in a pass: its searches. A query with several vectors
// needs one search for each.
std::uint32_t CountSearches(const SearchTask& task);

// How many rows the longest list of its searches holds.
std::uint32_t FindListLength(const SearchTask& task);

// The work beside searches, in milliseconds, as far as it is known beforehand: rows compared for
// diversity, rows visited for a cold start, rows scored for explanations. Scoring every row for
// want of a list is not known beforehand.
double WorkMs(const SearchTask& task, const CostEstimator& estimator);

// The memory that a task holds. What it shares with others, such as a cached mask, counts by its
// share.
std::uint64_t SumBytes(const SearchTask& task);

// What the cost of a search of this snapshot depends on.
CostEstimator::Shape MakeShape(const Snapshot& snapshot, std::uint32_t k);
// What a task asks of the device.
Schedule::Request MakeRequest(const SearchTask& task, const CostEstimator& estimator);

}  // namespace simile::engine

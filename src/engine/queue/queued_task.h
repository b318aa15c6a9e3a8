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

// A task in the executor, from Submit until its answer is handed out. Holds all memory that
// queueing and answering it needs, so nothing after Submit fails for lack of memory. Destroyed
// without the executor's mutex, because its stop callback may be waiting for that mutex.
struct QueuedTask {
  std::shared_ptr<SearchTask> task;  // shared with the pass that answers it
  std::uint64_t id = 0;              // in order of arrival
  Schedule::Request request;
  std::uint64_t bytes = 0;  // SumBytes of the task
  bool large = false;       // takes much of the queue, so the task waits beside the queue (Admit)
  bool large_reply = false;
  bool begun = false;  // a slice of it runs or has run
  unsigned slices_under_way = 0;
  bool wait_reported = false;       // its wait was reported to the observer
  Clock::TimePoint began_at;        // begin of its first slice
  Clock::Duration compute{};        // in all its slices
  Clock::TimePoint computed_until;  // end of its last slice; slices may overlap
  DeviceTime device_time;           // in its slices, when the task asks for it
  TaskProgress progress;
  absl::StatusOr<SearchAnswer> answer;  // once the task is finished
  std::unique_ptr<QueuedTask> next;     // in its TaskList
  // Calls the executor as soon as the task's caller is gone. The last member, so that it is
  // destroyed first.
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;
};

// An ordered list of tasks, linked through the tasks, so that adding one takes no memory. Not
// thread-safe.
class TaskList {
 public:
  TaskList() = default;
  ~TaskList() {
    while (!empty())
      TakeFirst();  // one by one: the destructor of a long list would recurse as deep as the list
                    // is long
  }
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;

  bool empty() const { return first_ == nullptr; }
  std::uint64_t bytes() const { return bytes_; }  // of the tasks (QueuedTask::bytes)
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
  QueuedTask* last_ = nullptr;  // null when the list is empty
  std::uint64_t bytes_ = 0;
};

// Whether a task needs more than one search for each query.
bool IsHard(const SearchTask& task);
Lane ChooseLane(const SearchTask& task);

// The searches of a task, by which the queue and a pass count it. A query with several vectors
// needs one search for each vector.
std::uint32_t CountSearches(const SearchTask& task);

// The length in rows of the longest list that a search of the task needs.
std::uint32_t FindListLength(const SearchTask& task);

// Estimates the work of a task besides searches, in milliseconds: rows compared for diversity, rows
// visited for a cold start, rows scored for explanations. Does not include scoring every row when
// lists are not long enough, which is not known beforehand.
double WorkMs(const SearchTask& task, const CostEstimator& estimator);

// The bytes that a task holds. The bytes of a shared object, such as a cached mask, are divided
// among its holders.
std::uint64_t SumBytes(const SearchTask& task);

// The shape of a search for k in this snapshot.
CostEstimator::Shape MakeShape(const Snapshot& snapshot, std::uint32_t k);
// The work that a task asks of the device.
Schedule::Request MakeRequest(const SearchTask& task, const CostEstimator& estimator);

}  // namespace simile::engine

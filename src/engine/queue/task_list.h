#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/queue/queued_task.h"

namespace simile::engine {

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

}  // namespace simile::engine

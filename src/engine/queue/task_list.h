#pragma once

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
  void Add(std::unique_ptr<QueuedTask> task) {
    QueuedTask* const added = task.get();
    (first_ == nullptr ? first_ : last_->next) = std::move(task);
    last_ = added;
  }
  // REQUIRES: not empty.
  std::unique_ptr<QueuedTask> TakeFirst() {
    std::unique_ptr<QueuedTask> task = std::move(first_);
    first_ = std::move(task->next);
    return task;
  }

 private:
  std::unique_ptr<QueuedTask> first_;
  QueuedTask* last_ = nullptr;  // unless it is empty
};

}  // namespace simile::engine

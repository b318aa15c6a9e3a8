#pragma once

#include <cstddef>
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
  std::size_t size() const { return size_; }
  void Add(std::unique_ptr<QueuedTask> task) {
    QueuedTask* const added = task.get();
    (first_ == nullptr ? first_ : last_->next) = std::move(task);
    last_ = added;
    ++size_;
  }
  // REQUIRES: not empty.
  std::unique_ptr<QueuedTask> TakeFirst() {
    std::unique_ptr<QueuedTask> task = std::move(first_);
    first_ = std::move(task->next);
    --size_;
    return task;
  }

 private:
  std::unique_ptr<QueuedTask> first_;
  QueuedTask* last_ = nullptr;  // unless it is empty
  std::size_t size_ = 0;
};

}  // namespace simile::engine

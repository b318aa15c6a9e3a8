#pragma once

#include <memory>
#include <utility>

#include "engine/queue/queued_task.h"

namespace simile::engine {

// Tasks that have their answer or their error, oldest first. Linked through themselves, so that to
// finish a task never takes memory.
class FinishedTasks {
 public:
  FinishedTasks() = default;
  ~FinishedTasks() {
    while (!empty()) TakeFirst();  // each alone: a long list would end in as deep a recursion
  }
  FinishedTasks(const FinishedTasks&) = delete;
  FinishedTasks& operator=(const FinishedTasks&) = delete;

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

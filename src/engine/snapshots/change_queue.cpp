#include "engine/snapshots/change_queue.h"

#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/threads.h"

namespace simile::engine {

ChangeQueue::ChangeQueue(std::size_t waiting_max)
    : waiting_max_(waiting_max), worker_([this] { Work(); }) {
  assert(waiting_max >= 1);
}

ChangeQueue::~ChangeQueue() { Stop(); }

absl::Status ChangeQueue::Submit(Change change, Change abandoned) {
  assert(change != nullptr);
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) {
      return base::Error(base::ErrorReason::kStopping, "the server is stopping");
    }
    if (waiting_.size() >= waiting_max_) {
      return base::Error(
          base::ErrorReason::kChangeQueueFull,
          fmt::format("{} changes to collections wait already; try again later", waiting_.size()));
    }
    waiting_.push_back({std::move(change), std::move(abandoned)});
  }
  wake_.notify_one();
  return absl::OkStatus();
}

void ChangeQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
  const std::lock_guard lock(join_mutex_);
  if (worker_.joinable()) worker_.join();
}

void ChangeQueue::Work() {
  base::UseBackgroundPriority();
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Entry entry = std::move(waiting_.front());
    waiting_.pop_front();
    const bool run = !stopped_;
    lock.unlock();
    if (run) {
      entry.change();
    } else if (entry.abandoned) {
      entry.abandoned();
    }
    entry = {};  // frees what the change captured before the next one starts
    lock.lock();
  }
}

}  // namespace simile::engine

#include "app/every_second.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <utility>

#include "base/threads.h"

namespace simile::app {

EverySecond::EverySecond(std::function<void()> work)
    : work_(std::move(work)), thread_([this] { Run(); }) {}

EverySecond::~EverySecond() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void EverySecond::Run() {
  base::UseBackgroundPriority();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return ending_; })) {
    lock.unlock();
    try {
      work_();
    } catch (const std::bad_alloc&) {
      // Left out this time.
    }
    lock.lock();
  }
}

}  // namespace simile::app

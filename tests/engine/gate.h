#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace simile::engine {

// Stops threads at a point that the test chooses. Open at first.
class Gate {
 public:
  void Close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Passes when open.
  void Pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  // Waits until `count` threads have come to the gate since the start.
  void AwaitArrivals(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  std::size_t arrived_ = 0;
};

}  // namespace simile::engine

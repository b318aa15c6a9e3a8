#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace simile::app {

// Calls a function about once a second, on a thread of its own and of low priority.
class EverySecond {
 public:
  //   work  may throw bad_alloc, which ends that call only
  explicit EverySecond(std::function<void()> work);
  // Waits for a call under way.
  ~EverySecond();
  EverySecond(const EverySecond&) = delete;
  EverySecond& operator=(const EverySecond&) = delete;

 private:
  void Run();

  const std::function<void()> work_;
  std::mutex mutex_;  // guards ending_
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace simile::app

#pragma once

#include <functional>
#include <stop_token>
#include <thread>

namespace simile::app {

// Calls a function about once a second, on a thread of its own and of low priority.
class EverySecond {
 public:
  //   work  may throw bad_alloc, which ends that call only
  explicit EverySecond(std::function<void()> work);
  // Waits for a call under way.
  ~EverySecond() = default;
  EverySecond(const EverySecond&) = delete;
  EverySecond& operator=(const EverySecond&) = delete;

 private:
  static void Run(const std::stop_token& stop, const std::function<void()>& work);

  std::jthread thread_;
};

}  // namespace simile::app

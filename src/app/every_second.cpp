#include "app/every_second.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <utility>

#include "base/background_priority.h"

namespace simile::app {

EverySecond::EverySecond(std::function<void()> work)
    : thread_([work = std::move(work)](const std::stop_token& stop) { Run(stop, work); }) {}

void EverySecond::Run(const std::stop_token& stop, const std::function<void()>& work) {
  base::UseBackgroundPriority();
  std::mutex mutex;
  std::condition_variable_any wake;  // only the stop wakes it
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    wake.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
    if (stop.stop_requested()) return;
    try {
      work();
    } catch (const std::bad_alloc&) {
      // Left out this time.
    }
  }
}

}  // namespace simile::app

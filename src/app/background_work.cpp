#include "app/background_work.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "base/threads.h"

namespace simile::app {
namespace {

// An idle process takes at most this share of one processor, for health checks, scrapes and a few
// searches a second.
constexpr int kIdlePercentMax = 5;
constexpr std::chrono::seconds kIdleTime{5};
// Less is not worth a pass over the allocator's arenas.
constexpr std::uint64_t kGrowthBytesMin = 16U << 20;

}  // namespace

BackgroundTask::BackgroundTask(std::function<void()> work)
    : done_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!done_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
  thread_ = std::thread([this, work = std::move(work)] {
    work();
    eventfd_write(done_.get(), 1);
  });
}

BackgroundTask::~BackgroundTask() { thread_.join(); }

bool BackgroundTask::done() const {
  pollfd watched{done_.get(), POLLIN, 0};
  return poll(&watched, 1, 0) == 1;
}

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
      // Skips this call only.
    }
    lock.lock();
  }
}

bool IdleMemory::IsDue(const Reading& now) {
  const std::optional<Reading> last = std::exchange(last_, now);
  if (!last) {
    idle_since_ = now.taken_at;
    least_bytes_ = now.resident_bytes;
    return false;
  }
  least_bytes_ = std::min(least_bytes_, now.resident_bytes);
  const Clock::Duration passed = now.taken_at - last->taken_at;
  if ((now.cpu_time - last->cpu_time) * 100 > passed * kIdlePercentMax) {
    idle_since_ = now.taken_at;
  }
  return now.taken_at - idle_since_ >= kIdleTime &&
         now.resident_bytes - least_bytes_ >= kGrowthBytesMin;
}

}  // namespace simile::app

#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/file_descriptor.h"
#include "simile/clock.h"

namespace simile::app {

// Runs a slow function on its own thread. A descriptor tells when the function has returned.
class BackgroundTask {
 public:
  // Throws system_error when the system has no thread or descriptor left. `work` must not throw.
  explicit BackgroundTask(std::function<void()> work);
  ~BackgroundTask();  // waits until the function returns
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  int done_fd() const { return done_.get(); }  // readable once the function has returned
  bool done() const;

 private:
  base::FileDescriptor done_;
  std::thread thread_;
};

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

// Decides when freed memory goes back to the system (base/memory_pages.h): when the process has
// been nearly idle for five seconds and has grown since the last return. Without this the allocator
// would keep the memory of a burst of large replies for ever. A busy process keeps it, because a
// return blocks the threads that allocate. Pure; used by one thread.
class IdleMemory {
 public:
  // What the process has used.
  struct Reading {
    Clock::TimePoint taken_at;
    Clock::Duration cpu_time{};  // of all threads, since the start
    std::uint64_t resident_bytes = 0;
  };

  // Whether freed memory is to be given back now. To be called about once a second.
  bool IsDue(const Reading& now);
  // Records the resident bytes after a return.
  void Returned(std::uint64_t resident_bytes) { least_bytes_ = resident_bytes; }

 private:
  std::optional<Reading> last_;
  Clock::TimePoint idle_since_;
  std::uint64_t least_bytes_ = 0;  // resident after the last return, or since
};

}  // namespace simile::app

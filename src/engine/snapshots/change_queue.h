#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <absl/status/status.h>

namespace simile::engine {

// The thread on which collections are loaded and reloaded, so that no I/O thread waits for a disk.
// The thread and the threads it starts have a lower priority than threads that answer
// (base/threads.h).
// Changes run one after another in order of arrival: two loads at once would only share the same
// disk and memory. Owned by wiring; all methods may be called from any thread.
class ChangeQueue {
 public:
  using Change = std::function<void()>;

  //   waiting_max  the most changes that wait behind the running one; >= 1
  explicit ChangeQueue(std::size_t waiting_max = 16);
  ~ChangeQueue();  // stops as Stop()
  ChangeQueue(const ChangeQueue&) = delete;
  ChangeQueue& operator=(const ChangeQueue&) = delete;

  // Runs `change` on the worker when its turn comes, or `abandoned` when the queue is stopped
  // first. Exactly one of the two is called, on the worker; neither when an error is returned.
  // Errors: kResourceExhausted when waiting_max changes wait; kUnavailable after Stop.
  absl::Status Submit(Change change, Change abandoned = {});

  // Finishes the running change, abandons the waiting changes, joins. Idempotent. A load cannot be
  // interrupted, so Stop waits for it.
  // REQUIRES: not called from a change.
  void Stop();

 private:
  struct Entry {
    Change change;
    Change abandoned;
  };
  void Work();

  const std::size_t waiting_max_;
  std::mutex mutex_;  // guards waiting_ and stopped_
  std::condition_variable wake_;
  std::deque<Entry> waiting_;
  bool stopped_ = false;
  std::mutex join_mutex_;  // held while joining, so that every Stop returns after the end
  std::thread worker_;
};

}  // namespace simile::engine

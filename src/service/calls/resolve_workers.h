#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "service/calls/caller_shares.h"
#include "simile/clock.h"

namespace simile::service {

// The caller of a part of a call, and the memory that the part takes.
struct WorkNeeds {
  CallerKey caller = 0;
  std::uint64_t waiting_bytes = 0;  // while it waits
  std::uint64_t bytes = 0;          // once it has begun
};

// Threads for the parts of calls whose time grows with rows, text or bytes. Such parts must not
// hold up the threads that carry the I/O. A few parts run at the same time, in turns of a few
// milliseconds. A part that takes longer goes behind the waiting parts, so a short part never waits
// for the end of a long one. What runs, what has begun, what waits and the memory of both are
// bounded. No caller gets all of any of them (CallerShares). Safe to use from any thread.
class ResolveWorkers {
 public:
  struct Options {
    std::size_t running_max = 1;  // parts that run at the same time
    // Parts that may have begun; all but running_max of them wait for their next turn. Each has a
    // thread. The first running_max go to any caller.
    std::size_t begun_max = 1;
    std::size_t waiting_max = 1'024;
    std::uint64_t waiting_bytes_max = 128U << 20;
    std::uint64_t begun_bytes_max = 128U << 20;
  };
  struct Counts {
    std::uint64_t waiting = 0;
    std::uint64_t waiting_bytes = 0;
    std::uint64_t begun = 0;
    std::uint64_t begun_bytes = 0;
  };
  //   clock  borrowed
  ResolveWorkers(const Options& options, const Clock& clock);
  ~ResolveWorkers();  // runs what waits
  ResolveWorkers(const ResolveWorkers&) = delete;
  ResolveWorkers& operator=(const ResolveWorkers&) = delete;

  // Has a thread run `work`, after the work that was posted before. `work` must not throw. Returns
  // false when too much work waits, of all callers or of this caller; `work` is not taken then. May
  // throw bad_alloc; then it is not taken either.
  // Work waits while there is no space for its bytes. Only work that needs no bytes passes it; if
  // its caller already holds begun bytes, work of other callers passes it, too.
  bool Post(std::function<void()> work, const WorkNeeds& needs = WorkNeeds());
  // Why work with these needs was not taken, for a message.
  std::string Shortage(const WorkNeeds& needs) const;

  // Work calls it often. If the turn of the work has been long and other work waits, it ends the
  // turn, and returns when the next turn begins. Does nothing on threads that are not workers.
  static void LetOthersRun();
  // Work calls it when it takes only this many bytes from now on, fewer than it was posted with.
  // Does nothing on threads that are not workers.
  static void NeedsOnly(std::uint64_t bytes);

  Counts counts() const;

 private:
  struct Waiting {
    std::function<void()> work;
    WorkNeeds needs;
    std::uint64_t place = 0;  // in the order of all waiting and paused work
  };
  struct Turn;  // of work that has begun

  void Run();
  void End();  // joins all threads, once they have run what waits
  void EndTurn(Turn& turn);
  // REQUIRES of these: mutex_ is held.
  Waiting Begin();
  void End(const WorkNeeds& needs);
  // The work to begin next, or the end of waiting_.
  std::deque<Waiting>::iterator NextToBegin();
  bool HasSpaceFor(const WorkNeeds& needs) const;
  // Whether a thread without work may begin some now, before the work that has begun goes on.
  bool MayBegin();
  bool MayGoOn(const Turn& turn);
  // Wakes a thread for the next turn, if there can be one now.
  void WakeNext();

  static thread_local Turn* turn_of_thread_;  // null on threads that are not workers

  const Options options_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards the members below
  std::deque<Waiting> waiting_;
  CallerShares waiting_places_;
  CallerShares waiting_bytes_;
  std::deque<Turn*> paused_;
  std::uint64_t next_place_ = 0;
  std::size_t running_ = 0;
  CallerShares begun_places_;  // of running and paused work
  CallerShares begun_bytes_;
  bool ending_ = false;
  std::condition_variable posted_;
  std::vector<std::thread> threads_;  // last: they use the members above
};

}  // namespace simile::service

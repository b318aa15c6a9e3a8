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

#include "service/caller_shares.h"
#include "simile/clock.h"

namespace simile::service {

// Whose a part of a call is, and what it takes.
struct WorkNeeds {
  CallerKey caller = 0;
  std::uint64_t waiting_bytes = 0;  // while it waits
  std::uint64_t bytes = 0;          // once it has begun
};

// Threads for the parts of calls whose time grows with rows, text or bytes, which must not hold up
// the thread that carries the I/O. A few run at the same time, in turns of a few milliseconds: work
// that takes longer goes behind what waits, so a short part never waits until a long one is done.
// Everything is bounded: what runs, what has begun, what waits, and the memory of both; and of each
// no caller gets all (CallerShares). Safe to use from any thread.
class ResolveWorkers {
 public:
  struct Options {
    std::size_t running_max = 1;  // at the same time
    // Work that may have begun, of which all but running_max waits for its next turn. Each has a
    // thread. The first running_max are not shared.
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

  // Has a thread run `work`, which must not throw, after what was posted before. False when so much
  // waits, of all callers or of this one, that it is not taken. May throw bad_alloc; then it is not
  // taken either.
  // Work that finds no space for its bytes waits, and only work that needs none passes it, unless
  // the space is missing because its own caller has much of it.
  bool Post(std::function<void()> work, const WorkNeeds& needs = WorkNeeds());
  // Why such work was not taken, for a message.
  std::string Shortage(const WorkNeeds& needs) const;

  // For work, called often: ends its turn when that was long and others wait, and returns when the
  // next one comes. Does nothing on threads that are not workers.
  static void LetOthersRun();
  // For work that takes fewer bytes from now on than it was posted with. Does nothing on threads
  // that are not workers.
  static void NeedsOnly(std::uint64_t bytes);

  Counts counts() const;

 private:
  struct Waiting {
    std::function<void()> work;
    WorkNeeds needs;
    std::uint64_t place = 0;  // in the order of all that waits
  };
  struct Turn;  // of work that has begun

  void Run();
  void End();  // of all threads, when they have run what waits
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
  CallerShares begun_places_;  // of what is running or paused
  CallerShares begun_bytes_;
  bool ending_ = false;
  std::condition_variable posted_;
  std::vector<std::thread> threads_;  // last: they use the members above
};

}  // namespace simile::service

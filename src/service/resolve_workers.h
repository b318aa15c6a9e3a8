#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "simile/clock.h"

namespace simile::service {

// Threads for the parts of calls whose time grows with rows, text or bytes, which must not hold up
// the thread that carries the I/O. A few run at the same time, in turns of a few milliseconds: work
// that takes longer goes behind what waits, so a short part never waits until a long one is done.
// Everything is bounded: what runs, what has begun, what waits, and the memory of what has begun.
// Safe to use from any thread.
class ResolveWorkers {
 public:
  struct Options {
    std::size_t running_max = 1;  // at the same time
    // Work that may have begun, of which all but running_max waits for its next turn. Each has a
    // thread.
    std::size_t begun_max = 1;
    std::size_t waiting_max = 1'024;
    std::uint64_t begun_bytes_max = 64U << 20;
  };
  //   clock  borrowed
  ResolveWorkers(const Options& options, const Clock& clock);
  ~ResolveWorkers();  // runs what waits
  ResolveWorkers(const ResolveWorkers&) = delete;
  ResolveWorkers& operator=(const ResolveWorkers&) = delete;

  // Has a thread run `work`, which must not throw, after what was posted before. False when so much
  // waits that it is not taken. May throw bad_alloc; then it is not taken either.
  //   bytes  that it takes once it has begun. Work that finds no space for them waits, and later
  //          work that does passes it; alone it may take more than there are.
  bool Post(std::function<void()> work, std::uint64_t bytes = 0);

  // For work, called often: ends its turn when that was long and others wait, and returns when the
  // next one comes. Does nothing on threads that are not workers.
  static void LetOthersRun();

 private:
  struct Waiting {
    std::function<void()> work;
    std::uint64_t bytes = 0;
    std::uint64_t place = 0;  // in the order of all that waits
  };
  struct Turn;  // of work that has begun

  void Run();
  void EndTurn(Turn& turn);
  // REQUIRES of these: mutex_ is held.
  // The work to begin next, or the end of waiting_.
  std::deque<Waiting>::iterator NextToBegin();
  // Whether a thread without work may begin some now, before the work that has begun goes on.
  bool MayBegin();
  bool MayGoOn(const Turn& turn);
  // Wakes a thread for the next turn, if there can be one now.
  void WakeNext();

  static thread_local Turn* turn_of_thread_;  // null on threads that are not workers

  const Options options_;
  const Clock& clock_;
  std::mutex mutex_;  // guards the members below
  std::deque<Waiting> waiting_;
  std::deque<Turn*> paused_;
  std::uint64_t next_place_ = 0;
  std::size_t running_ = 0;
  std::size_t begun_ = 0;  // running or paused
  std::uint64_t begun_bytes_ = 0;
  bool ending_ = false;
  std::condition_variable posted_;
  std::vector<std::thread> threads_;  // last: they use the members above
};

}  // namespace simile::service

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulated_cuda/fiber.h"
#include "simile/clock.h"
#include "simulation/random.h"

namespace simile::simulation {

struct SimulatedThread;

// The simulated threads that wait for the same thing.
using Waiters = std::vector<SimulatedThread*>;

// Runs a program's threads as fibers of one thread, in an order that a seed decides. A thread gives
// way only at points: each operation of the simulated primitives (primitives.h) is one. Time is
// simulated too. It does not pass while any thread can run; only in some schedules it may, or a
// thread is held up for long, as on a machine that is busy.
//
// Half of the schedules choose among all threads alike at each point, with more or less inclination
// to go on with the one that runs. The others give each thread a random priority, run the first
// that can, and at a few random points put the running one last, which finds what needs a few
// particular switches in a long run (Burckhardt, Kothari, Musuvathi and Nagarakatte, A Randomized
// Scheduler with Probabilistic Guarantees of Finding Bugs, 2010).
//
// A schedule is a pure function of the program and the seed. Used by one thread at a time.
class Simulator {
 public:
  Simulator();
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  // Runs body as the first simulated thread, until it and all threads that it started have ended.
  // Returns what went wrong; empty for nothing. After a failure the threads' frames are never
  // unwound, so what they own is lost.
  std::string Run(std::uint64_t seed, const std::function<void()>& body);

  // The simulator that runs a schedule; null outside.
  static Simulator* current() { return current_; }

  // Called whenever no thread can run and none is held up, before time passes; returns what is
  // wrong, or "". Of one schedule: body sets it.
  void SetIdleCheck(std::function<std::string()> check) { idle_check_ = std::move(check); }
  // Ends the schedule. Does not return on a simulated thread.
  void Fail(std::string what);

  Clock::TimePoint now() const { return now_; }
  // Whether time may pass between two points of a thread that does not wait.
  bool time_slips() const { return time_slips_ || stalls_; }
  // For a program whose checks measure time: no thread is held up in this schedule.
  void ForbidTimeSlips() { time_slips_ = stalls_ = false; }
  // For the program's own choices.
  Random& random() { return program_random_; }
  std::uint64_t points() const { return points_; }
  // Of all points of the last schedule: equal for equal schedules.
  std::uint64_t trace_hash() const { return trace_hash_; }
  // The last points of the last schedule, a line each.
  std::string Trace(std::size_t points_max) const;

  // Names the running thread in traces.
  void NameThread(std::string name);
  const std::string& running_name() const;
  // Locks that the running thread holds.
  int& locks_held();
  // The running thread waits so long.
  void Sleep(Clock::Duration duration);
  // The same for some of so many steps. Threads that wait in steps often go on at the same moment,
  // which is when their order matters; in some schedules all do, since no pause takes time.
  void Pause(std::uint64_t steps_max);
  static constexpr Clock::Duration kStep = std::chrono::microseconds(500);

  // For the primitives. All but the last two do nothing outside a simulated thread.
  //   operation, object  for the trace; live for ever
  void Point(std::string_view operation, std::string_view object);
  // The running thread waits to be woken, or until a moment. Returns whether it was woken.
  //   spurious  whether it may also be woken for no reason
  bool Wait(Waiters& waiters, Clock::TimePoint until = Clock::TimePoint::max(),
            bool spurious = false);
  void WakeAll(Waiters& waiters);
  void WakeAny(Waiters& waiters);  // one of them
  SimulatedThread* running() const { return running_; }
  SimulatedThread* StartThread(std::function<void()> body);
  void JoinThread(SimulatedThread* thread);

 private:
  struct Step {
    const SimulatedThread* thread = nullptr;
    std::string_view operation;
    std::string_view object;
    Clock::TimePoint at;
  };

  static void RunBody(void* simulator);
  void Begin(std::uint64_t seed);
  void MainLoop();
  void Record(std::string_view operation, std::string_view object);
  SimulatedThread* Choose();
  void MakeRunnable(SimulatedThread& thread, bool woken);
  void Suspend();
  bool PassTime();  // to the next moment that a thread waits for; false when there is none
  void WakeSpuriously();
  void Stall();  // the running thread, for a while
  std::string Deadlock() const;

  static Simulator* current_;

  emulated_cuda::FiberHost host_;
  void* exceptions_ = nullptr;  // of the host thread: what __cxa_get_globals gives
  // The first thread_count_ are of this schedule; the others keep their stacks for later ones.
  std::vector<std::unique_ptr<SimulatedThread>> threads_;
  std::size_t thread_count_ = 0;
  std::size_t ended_count_ = 0;
  std::size_t stalled_count_ = 0;
  std::vector<SimulatedThread*> runnable_;
  SimulatedThread* running_ = nullptr;
  SimulatedThread* next_ = nullptr;  // chosen to run next; null: not chosen yet

  Random schedule_random_{0};
  Random program_random_{0};
  bool by_priority_ = false;
  std::uint64_t stay_of_8_ = 0;     // how often of eight times the running thread goes on
  std::uint64_t change_every_ = 0;  // points between two changes of priority, on average
  std::uint64_t lowest_priority_ = 0;
  bool time_slips_ = false;
  bool stalls_ = false;   // threads are held up, now and then and for long
  bool hurries_ = false;  // no pause takes time
  bool wakes_spuriously_ = false;

  Clock::TimePoint now_;
  std::function<std::string()> idle_check_;
  std::string failure_;
  std::uint64_t points_ = 0;
  std::uint64_t trace_hash_ = 0;
  std::vector<Step> steps_;  // a ring
};

}  // namespace simile::simulation

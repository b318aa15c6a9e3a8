#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/file_descriptor.h"
#include "simile/clock.h"

namespace simile::net {

// One thread that waits for sockets, for timers, and for tasks of other threads. The objects of a
// loop are used on its thread alone. Knows no protocol. Owned by Server.
//
// A turn: wait; react to sockets; run posted tasks; fire timers; call before_wait; run the tasks of
// Soon. So calls that come together begin together, and each connection writes once a turn.
class EventLoop {
 public:
  // What reacts to a socket.
  class Watcher {
   public:
    //   events  EPOLLIN, EPOLLOUT and others
    virtual void OnEvents(std::uint32_t events) = 0;

   protected:
    ~Watcher() = default;
  };

  // Work for the loop's thread. Belongs to one loop. Posting it takes no memory.
  class Task {
   public:
    virtual ~Task() = default;
    // On the loop's thread. May post or destroy the task.
    virtual void Run() = 0;
    // Whether the loop still has to run it. On the loop's thread.
    bool is_posted() const { return is_posted_.load(std::memory_order_acquire); }

   private:
    friend class EventLoop;
    std::atomic<bool> is_posted_ = false;
    Task* next_posted_ = nullptr;
    bool is_soon_ = false;
    Task* next_soon_ = nullptr;
  };

  // Work for a point in time. The destructor disarms it.
  class Timer {
   public:
    Timer() = default;
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    virtual ~Timer() { Disarm(); }
    // On the loop's thread. May arm or destroy the timer.
    virtual void OnTime() = 0;
    void Disarm() {
      if (link_ == nullptr) return;
      *link_ = next_;
      if (next_ != nullptr) next_->link_ = link_;
      link_ = nullptr;
    }
    bool is_armed() const { return link_ != nullptr; }
    Clock::TimePoint time() const { return time_; }

   private:
    friend class EventLoop;
    Clock::TimePoint time_;
    Timer* next_ = nullptr;
    Timer** link_ = nullptr;  // the pointer to this timer; null while it is disarmed
  };

  // Called once a turn. Returns whether it did anything; then the loop takes another turn before it
  // waits.
  using BeforeWait = std::function<bool()>;

  //   before_wait  may be empty
  //   clock        borrowed
  // Throws system_error when no file descriptor is left.
  EventLoop(std::string thread_name, BeforeWait before_wait, const Clock& clock);
  ~EventLoop();  // REQUIRES: Stop was called, if the loop was started
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void Start();
  // Ends the thread and waits for it; tasks that were posted before have run then. Not called on
  // the loop's thread.
  void Stop();
  // A turn on the calling thread, which does not wait. For a loop that is not started.
  void TurnNow() { Turn(false); }

  // Any thread. Runs the task soon; once for several posts before it runs.
  void Post(Task& task);

  // The functions below are for the loop's thread, or before it starts.

  // Runs the task at the end of this turn. When the tasks of Soon run already, at the end of the
  // next turn.
  void Soon(Task& task);
  // Reports each change of the socket's state once (EPOLLET), until the socket is closed. False
  // when the kernel has no memory for it.
  bool Watch(int fd, Watcher& watcher);
  // Fires at `time` or up to kTimerStep later.
  void Arm(Timer& timer, Clock::TimePoint time);
  // The start of this turn.
  Clock::TimePoint now() const { return now_; }
  // For reading sockets; used by one reader at a time.
  static constexpr std::size_t kReadBytes = 64U << 10;
  std::array<std::uint8_t, kReadBytes>& read_buffer() { return *read_buffer_; }

  static constexpr std::chrono::milliseconds kTimerStep{4};

 private:
  // Timers by their time modulo kSlots steps, as in a hashed timing wheel (Varghese and Lauck,
  // 1987). A timer beyond the last slot waits there and is armed again.
  static constexpr std::int64_t kSlots = 1'024;
  using Step = std::int64_t;

  void Run();
  void Turn(bool may_wait);
  void RunPosted();
  void RunSoon();
  void FireTimers();
  void FireSlot(std::size_t slot);
  int TimeoutMs();
  static Step ToStep(Clock::TimePoint time) { return time.time_since_epoch() / kTimerStep; }
  // The first step at or after `from` whose slot has timers; from + kSlots when there is none.
  Step NextStepWithTimers(Step from);

  const std::string thread_name_;
  const BeforeWait before_wait_;
  const Clock& clock_;
  const base::FileDescriptor epoll_;
  const base::FileDescriptor wake_event_;

  std::atomic<Task*> posted_ = nullptr;  // the last one posted, then those before it
  std::atomic<bool> is_asleep_ = false;
  std::atomic<bool> stop_asked_ = false;

  // Of the thread.
  Clock::TimePoint now_;
  Task* soon_ = nullptr;
  bool looks_again_ = false;
  Step fired_step_ = 0;  // the timers up to here have fired
  std::array<Timer*, kSlots> slots_{};
  std::array<std::uint64_t, kSlots / 64> may_have_timers_{};  // one bit for each slot
  const std::unique_ptr<std::array<std::uint8_t, kReadBytes>> read_buffer_;

  std::thread thread_;
};

// Whether the calling thread is the thread of a loop, which calls before_wait before it waits.
bool OnLoopThread();

}  // namespace simile::net

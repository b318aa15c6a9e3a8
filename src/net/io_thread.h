#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include "observe/metrics.h"
#include "simile/clock.h"

namespace simile::net {

// What waits for an operation of gRPC: its address is the operation's tag. The thread of the queue
// calls it.
class IoEvent {
 public:
  //   ok  false: the operation failed, or there is nothing more to read
  virtual void Happened(bool ok) = 0;

 protected:
  ~IoEvent() = default;
};

// The event of one operation of an object, which has a function for it.
template <class Owner>
class IoEventOf final : public IoEvent {
 public:
  using Reaction = void (Owner::*)(bool ok);
  IoEventOf(Owner& owner, Reaction reaction) : owner_(owner), reaction_(reaction) {}
  void Happened(bool ok) override { (owner_.*reaction_)(ok); }
  // As gRPC's tag, from which the thread gets the IoEvent back.
  void* tag() { return static_cast<IoEvent*>(this); }

 private:
  Owner& owner_;
  const Reaction reaction_;
};

// A call from its arrival until gRPC is done with it, as its I/O thread watches it.
class OpenCall {
 public:
  virtual ~OpenCall() = default;

  // The server stops: a call that would stay as long as its caller likes ends soon. On the I/O
  // thread, again every IoThread::kStopInterval until the call has ended.
  virtual void Stop() {}
  // Ends the call without its answer. On the I/O thread.
  virtual void Cut() = 0;

 protected:
  // Something is being sent: the call is cut if the caller has not taken it by then. Any thread.
  // REQUIRES: `time` is at least IoThread::kLookInterval away.
  void SetTakeDeadline(Clock::TimePoint time) {
    take_deadline_.store(time.time_since_epoch().count(), std::memory_order_relaxed);
  }
  // It was taken. Any thread.
  void ClearTakeDeadline() { SetTakeDeadline(Clock::TimePoint::max()); }

 private:
  friend class IoThread;
  std::atomic<Clock::Duration::rep> take_deadline_ = Clock::Duration::max().count();
  OpenCall* previous_ = nullptr;  // of the thread's list
  OpenCall* next_ = nullptr;
};

// Work that its I/O thread retries later, because there was no memory for it.
class PostponedWork {
 public:
  virtual ~PostponedWork() = default;

  // On the I/O thread; may call IoThread::Postpone again.
  virtual void Retry() = 0;

 private:
  friend class IoThread;
  bool is_listed_ = false;
  PostponedWork* next_ = nullptr;  // of the thread's list
};

// A thread that reacts to the events of one completion queue: calls arrive, and their operations
// end. Waits without end when nothing happens. Between two waits it first reacts to what has
// arrived, so that the work of calls that come together can be begun together. Owned by Server.
class IoThread {
 public:
  // Called when nothing more, or very much, has arrived, before the thread waits. Returns whether
  // it did anything: then the thread looks again first.
  using BeforeWait = std::function<bool()>;

  // How often it looks, at least, for replies that nobody takes.
  static constexpr std::chrono::seconds kLookInterval{1};
  // How often it asks the open calls to end while the server stops.
  static constexpr std::chrono::milliseconds kStopInterval{100};

  //   before_wait  may be empty
  //   clock, metrics  borrowed
  IoThread(std::unique_ptr<grpc::ServerCompletionQueue> queue, BeforeWait before_wait,
           const Clock& clock, observe::Metrics& metrics);
  ~IoThread();  // REQUIRES: the server of the queue has shut down, if the thread was started.
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void Start();

  // For operations, which may be begun on any thread.
  grpc::ServerCompletionQueue& queue() { return *queue_; }

  // On this thread: a call arrives, or gRPC is done with it.
  void Add(OpenCall& call);
  void Remove(OpenCall& call);
  // On this thread, or before it starts: retries it within kLookInterval, unless the server stops.
  // Takes no memory. `work` must outlive the thread.
  void Postpone(PostponedWork& work);
  // On this thread: whether the server stops, so that a call that arrives all the same is refused.
  bool stopping() const { return stopping_; }

  // Calls Stop() of all open calls until they end. Any thread; once.
  void StopCalls();
  // After StopCalls: waits until no call is open. False when `timeout` passes first.
  bool AwaitNoCalls(Clock::Duration timeout);

 private:
  void Run();
  void ReactToWhatCame();
  // Waits for one event and reacts to it. False when there will be no more.
  bool Wait();
  void OnStop(bool ok);
  void StopOpenCalls();
  // When it is time to: retries what was postponed, and cuts the calls whose replies should have
  // been taken.
  void DoWhatIsDue();
  void RetryPostponed();
  void CutOverdue(Clock::TimePoint now);
  void NotifyIfIdle();

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  const BeforeWait before_wait_;
  const Clock& clock_;
  observe::Metrics& metrics_;

  // Used by the thread only.
  OpenCall* open_ = nullptr;            // the list of open calls
  PostponedWork* postponed_ = nullptr;  // a list
  Clock::TimePoint next_look_;
  bool stopping_ = false;

  std::atomic<bool> stop_asked_ = false;
  grpc::Alarm stop_alarm_;  // brings stop_event_ into the queue
  IoEventOf<IoThread> stop_event_{*this, &IoThread::OnStop};
  std::mutex idle_mutex_;  // guards idle_
  std::condition_variable idle_changed_;
  bool idle_ = false;  // stopping, and no call is open

  std::thread thread_;  // last: uses the members above
};

}  // namespace simile::net

#include "net/io_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <grpc/support/time.h>

#include "base/thread_name.h"
#include "net/queued_service.h"

namespace simile::net {
namespace {

// Each look goes over all open calls, so however their deadlines lie, no more than so often.
constexpr std::chrono::milliseconds kLookIntervalMin{50};

// After so many events the work of the calls that came is begun although more may have come: under
// a flood it would never be.
constexpr int kReactionsMax = 256;

using NextStatus = grpc::CompletionQueue::NextStatus;

gpr_timespec After(Clock::Duration duration) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanoseconds, GPR_TIMESPAN));
}

thread_local bool is_io_thread = false;

void React(void* tag, bool ok) { static_cast<IoEvent*>(tag)->Happened(ok); }

}  // namespace

IoThread::IoThread(std::unique_ptr<grpc::ServerCompletionQueue> queue, BeforeWait before_wait,
                   const Clock& clock, observe::Metrics& metrics)
    : queue_(std::move(queue)),
      before_wait_(std::move(before_wait)),
      clock_(clock),
      metrics_(metrics) {}

IoThread::~IoThread() {
  queue_->Shutdown();
  if (thread_.joinable()) {
    thread_.join();
    return;
  }
  // gRPC wants to see the end of every queue.
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) React(tag, ok);
}

void IoThread::Start() {
  thread_ = std::thread([this] { Run(); });
}

bool OnIoThread() { return is_io_thread; }

void IoThread::Run() {
  base::NameThread("simile-io");
  is_io_thread = true;
  do {
    ReactToWhatCame();
    DoWhatIsDue();
  } while ((before_wait_ && before_wait_()) || Wait());
}

void IoThread::ReactToWhatCame() {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec now = gpr_time_0(GPR_CLOCK_MONOTONIC);
  bool looked_again = false;
  for (int reactions = 0; reactions < kReactionsMax;) {
    if (queue_->AsyncNext(&tag, &ok, now) == NextStatus::GOT_EVENT) {
      React(tag, ok);
      ++reactions;
      looked_again = false;
    } else {
      // gRPC serves one connection at each look, and a look that only ends a read or a write brings
      // no event although other connections have some. So where much comes, one such look is not
      // the end: 64 calls on 16 connections make passes of 54 instead of 4.
      if (reactions < 2 || looked_again) return;
      looked_again = true;
    }
  }
}

bool IoThread::Wait() {
  void* tag = nullptr;
  bool ok = false;
  if (open_ == nullptr && postponed_ == nullptr) {
    if (!queue_->Next(&tag, &ok)) return false;
    React(tag, ok);
    return true;
  }
  const NextStatus status = queue_->AsyncNext(&tag, &ok, After(next_look_ - clock_.Now()));
  if (status == NextStatus::GOT_EVENT) React(tag, ok);
  return status != NextStatus::SHUTDOWN;
}

void IoThread::Add(OpenCall& call) {
  call.next_ = open_;
  if (open_ != nullptr) open_->previous_ = &call;
  open_ = &call;
  if (!stopping_) return;
  NotifyIfIdle();
  call.Stop();
}

void IoThread::Remove(OpenCall& call) {
  (call.previous_ == nullptr ? open_ : call.previous_->next_) = call.next_;
  if (call.next_ != nullptr) call.next_->previous_ = call.previous_;
  call.previous_ = nullptr;
  call.next_ = nullptr;
  if (stopping_) NotifyIfIdle();
}

void IoThread::Postpone(PostponedWork& work) {
  if (work.is_listed_) return;
  work.is_listed_ = true;
  work.next_ = std::exchange(postponed_, &work);
}

void IoThread::DoWhatIsDue() {
  if (open_ == nullptr && postponed_ == nullptr) return;
  const Clock::TimePoint now = clock_.Now();
  if (now < next_look_) return;
  next_look_ = now + (stopping_ ? Clock::Duration(kStopInterval) : kLookInterval);
  RetryPostponed();
  CutOverdue(now);
  if (stopping_) StopOpenCalls();
}

void IoThread::RetryPostponed() {
  PostponedWork* next = std::exchange(postponed_, nullptr);
  while (next != nullptr) {
    PostponedWork& work = *next;
    next = std::exchange(work.next_, nullptr);
    work.is_listed_ = false;
    // Once the server stops, its queue may be shut down, which must be asked for nothing then.
    if (!stop_asked_) work.Retry();
  }
}

void IoThread::CutOverdue(Clock::TimePoint now) {
  for (OpenCall* call = open_; call != nullptr; call = call->next_) {
    const Clock::TimePoint deadline{
        Clock::Duration(call->take_deadline_.load(std::memory_order_relaxed))};
    if (now < deadline) {
      next_look_ = std::min(next_look_, std::max(deadline, now + kLookIntervalMin));
      continue;
    }
    metrics_.CountRejected(observe::Rejection::kReplyNotTaken);
    call->ClearTakeDeadline();  // counts once
    call->Cut();
  }
}

void IoThread::StopCalls() {
  stop_asked_ = true;
  stop_alarm_.Set(queue_.get(), gpr_now(GPR_CLOCK_MONOTONIC), stop_event_.tag());
}

void IoThread::OnStop(bool /*ok*/) {
  stopping_ = true;
  next_look_ = std::min(next_look_, clock_.Now() + kStopInterval);
  StopOpenCalls();
  NotifyIfIdle();
}

void IoThread::StopOpenCalls() {
  for (OpenCall* call = open_; call != nullptr; call = call->next_) call->Stop();
}

void IoThread::NotifyIfIdle() {
  const std::lock_guard lock(idle_mutex_);
  idle_ = open_ == nullptr;
  if (idle_) idle_changed_.notify_all();
}

bool IoThread::AwaitNoCalls(Clock::Duration timeout) {
  std::unique_lock lock(idle_mutex_);
  return idle_changed_.wait_for(lock, timeout, [this] { return idle_; });
}

}  // namespace simile::net

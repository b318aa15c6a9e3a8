#include "simulation/simulator.h"

#include <cxxabi.h>
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace simile::simulation {
namespace {

// No schedule of the scenarios comes near this; one that does runs in a circle.
constexpr std::uint64_t kPointsMax = 2'000'000;
constexpr std::size_t kStepsKept = 4'096;
constexpr std::uint64_t kFirstPriority = std::uint64_t{1} << 31;

// What a thread has caught and not yet finished with. The compiler's library keeps it for each real
// thread, so that it is exchanged with the fiber.
struct Exceptions {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

Exceptions& ToExceptions(void* globals) { return *static_cast<Exceptions*>(globals); }

std::uint64_t Mixed(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x100000001B3U;
}

}  // namespace

struct SimulatedThread {
  emulated_cuda::Fiber fiber;
  std::function<void()> body;
  std::string name;
  std::size_t index = 0;
  std::uint64_t priority = 0;
  bool runnable = false;
  bool ended = false;
  bool woken = false;
  bool spurious = false;  // it may be woken for no reason
  int locks_held = 0;
  Waiters* waits_in = nullptr;
  Clock::TimePoint until = Clock::TimePoint::max();
  std::string_view last_operation;
  std::string_view last_object;
  Waiters joining;
  Exceptions exceptions;
};

Simulator* Simulator::current_ = nullptr;

Simulator::Simulator() : exceptions_(abi::__cxa_get_globals()) {
  host_.body = &RunBody;
  host_.argument = this;
  steps_.resize(kStepsKept);
}

Simulator::~Simulator() = default;

std::string Simulator::Run(std::uint64_t seed, const std::function<void()>& body) {
  Begin(seed);
  current_ = this;
  StartThread(body)->name = "main";
  MainLoop();
  current_ = nullptr;
  idle_check_ = nullptr;
  return std::exchange(failure_, {});
}

void Simulator::Begin(std::uint64_t seed) {
  schedule_random_ = Random(seed);
  program_random_ = Random(schedule_random_.Next());
  by_priority_ = schedule_random_.OneIn(2);
  constexpr std::uint64_t kStays[] = {0, 4, 7};
  stay_of_8_ = kStays[schedule_random_.Below(std::size(kStays))];
  constexpr std::uint64_t kChanges[] = {10, 50, 250};
  change_every_ = kChanges[schedule_random_.Below(std::size(kChanges))];
  time_slips_ = schedule_random_.OneIn(4);
  wakes_spuriously_ = schedule_random_.OneIn(4);
  stalls_ = schedule_random_.OneIn(4);
  hurries_ = schedule_random_.OneIn(3);
  lowest_priority_ = kFirstPriority;
  now_ = Clock::TimePoint(std::chrono::hours(1));
  thread_count_ = 0;
  ended_count_ = 0;
  stalled_count_ = 0;
  runnable_.clear();
  running_ = nullptr;
  next_ = nullptr;
  points_ = 0;
  trace_hash_ = 0xCBF29CE484222325U;
}

void Simulator::MainLoop() {
  while (failure_.empty() && ended_count_ < thread_count_) {
    if (runnable_.empty()) {
      const bool is_idle = idle_check_ && stalled_count_ == 0;
      const std::string wrong = is_idle ? idle_check_() : std::string();
      if (!failure_.empty()) break;
      if (!wrong.empty()) {
        failure_ = wrong;
      } else if (!PassTime()) {
        failure_ = Deadlock();
      }
      continue;
    }
    running_ = std::exchange(next_, nullptr);
    if (running_ == nullptr) running_ = Choose();
    running_->fiber.Resume(host_);
    running_ = nullptr;
  }
}

void Simulator::RunBody(void* argument) {
  auto& simulator = *static_cast<Simulator*>(argument);
  SimulatedThread& thread = *simulator.running_;
  ToExceptions(simulator.exceptions_) = {};
  thread.body();
  thread.body = nullptr;
  simulator.Record("ends", thread.name);
  if (thread.locks_held != 0) simulator.Fail(thread.name + " ended with a lock");
  thread.ended = true;
  ++simulator.ended_count_;
  std::erase(simulator.runnable_, &thread);
  simulator.WakeAll(thread.joining);
  thread.fiber.Finish(simulator.host_);
}

SimulatedThread* Simulator::StartThread(std::function<void()> body) {
  if (thread_count_ == threads_.size()) {
    threads_.push_back(std::make_unique<SimulatedThread>());
    threads_.back()->index = thread_count_;
  }
  SimulatedThread& thread = *threads_[thread_count_++];
  thread.body = std::move(body);
  thread.name = fmt::format("thread {}", thread.index);
  // Between those that exist: priorities are drawn anew for each thread.
  thread.priority = kFirstPriority + schedule_random_.Below(kFirstPriority);
  thread.ended = false;
  thread.locks_held = 0;
  thread.waits_in = nullptr;
  thread.last_operation = {};
  thread.last_object = {};
  thread.joining.clear();
  thread.exceptions = {};
  thread.fiber.Start(thread.index);
  MakeRunnable(thread, true);
  return &thread;
}

void Simulator::JoinThread(SimulatedThread* thread) {
  Point("joins", thread->name);
  while (!thread->ended) Wait(thread->joining);
}

void Simulator::NameThread(std::string name) { running_->name = std::move(name); }

const std::string& Simulator::running_name() const { return running_->name; }

int& Simulator::locks_held() { return running_->locks_held; }

void Simulator::Fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
  if (running_ != nullptr) Suspend();
}

void Simulator::Suspend() {
  SimulatedThread& thread = *running_;
  thread.exceptions = ToExceptions(exceptions_);
  thread.fiber.Suspend(host_, false);
  ToExceptions(exceptions_) = thread.exceptions;
}

void Simulator::Record(std::string_view operation, std::string_view object) {
  steps_[points_ % kStepsKept] = {running_, operation, object, now_};
  running_->last_operation = operation;
  running_->last_object = object;
  ++points_;
  trace_hash_ = Mixed(trace_hash_, running_->index);
  trace_hash_ = Mixed(trace_hash_, operation.size() + 256 * object.size());
  trace_hash_ = Mixed(trace_hash_, static_cast<std::uint64_t>(now_.time_since_epoch().count()));
}

void Simulator::Point(std::string_view operation, std::string_view object) {
  if (running_ == nullptr) return;
  Record(operation, object);
  if (points_ > kPointsMax) Fail("the schedule does not end");
  if (time_slips_ && schedule_random_.OneIn(64)) PassTime();
  if (wakes_spuriously_ && schedule_random_.OneIn(64)) WakeSpuriously();
  if (stalls_ && schedule_random_.OneIn(64)) return Stall();
  SimulatedThread* const chosen = Choose();
  if (chosen == running_) return;
  next_ = chosen;
  Suspend();
}

SimulatedThread* Simulator::Choose() {
  const bool goes_on = running_ != nullptr && running_->runnable;
  if (!by_priority_) {
    if (goes_on && schedule_random_.Below(8) < stay_of_8_) return running_;
    return runnable_[schedule_random_.Below(runnable_.size())];
  }
  if (goes_on && schedule_random_.OneIn(change_every_)) running_->priority = --lowest_priority_;
  return *std::ranges::max_element(runnable_, {}, &SimulatedThread::priority);
}

void Simulator::MakeRunnable(SimulatedThread& thread, bool woken) {
  thread.woken = woken;
  thread.runnable = true;
  thread.waits_in = nullptr;
  thread.until = Clock::TimePoint::max();
  runnable_.push_back(&thread);
}

bool Simulator::Wait(Waiters& waiters, Clock::TimePoint until, bool spurious) {
  SimulatedThread& thread = *running_;
  thread.runnable = false;
  std::erase(runnable_, &thread);
  waiters.push_back(&thread);
  thread.waits_in = &waiters;
  thread.until = until;
  thread.spurious = spurious;
  Suspend();
  return thread.woken;
}

void Simulator::WakeAll(Waiters& waiters) {
  for (SimulatedThread* const thread : waiters) MakeRunnable(*thread, true);
  waiters.clear();
}

void Simulator::WakeAny(Waiters& waiters) {
  if (waiters.empty()) return;
  const auto chosen =
      waiters.begin() + static_cast<std::ptrdiff_t>(schedule_random_.Below(waiters.size()));
  MakeRunnable(**chosen, true);
  waiters.erase(chosen);
}

void Simulator::WakeSpuriously() {
  const std::size_t first = schedule_random_.Below(thread_count_);
  for (std::size_t i = 0; i < thread_count_; ++i) {
    SimulatedThread& thread = *threads_[(first + i) % thread_count_];
    if (thread.ended || thread.runnable || !thread.spurious) continue;
    std::erase(*thread.waits_in, &thread);
    return MakeRunnable(thread, true);
  }
}

void Simulator::Stall() {
  Waiters alone;
  ++stalled_count_;
  Wait(alone, now_ + kStep * static_cast<int>(schedule_random_.Between(1, 16)));
  --stalled_count_;
}

bool Simulator::PassTime() {
  Clock::TimePoint next = Clock::TimePoint::max();
  for (std::size_t i = 0; i < thread_count_; ++i) {
    const SimulatedThread& thread = *threads_[i];
    if (!thread.ended && !thread.runnable) next = std::min(next, thread.until);
  }
  if (next == Clock::TimePoint::max()) return false;
  now_ = std::max(now_, next);
  for (std::size_t i = 0; i < thread_count_; ++i) {
    SimulatedThread& thread = *threads_[i];
    if (thread.ended || thread.runnable || thread.until > now_) continue;
    std::erase(*thread.waits_in, &thread);
    MakeRunnable(thread, false);
  }
  return true;
}

void Simulator::Sleep(Clock::Duration duration) {
  Point("sleeps", "");
  if (duration <= Clock::Duration::zero()) return;
  Waiters alone;
  Wait(alone, now_ + duration);
}

void Simulator::Pause(std::uint64_t steps_max) {
  const std::uint64_t steps = hurries_ ? 0 : program_random_.Below(steps_max + 1);
  Sleep(kStep * static_cast<int>(steps));
}

std::string Simulator::Deadlock() const {
  std::string text = "deadlock: no thread can run";
  for (std::size_t i = 0; i < thread_count_; ++i) {
    const SimulatedThread& thread = *threads_[i];
    if (thread.ended) continue;
    text += fmt::format("\n  {} {} {}", thread.name, thread.last_operation, thread.last_object);
  }
  return text;
}

std::string Simulator::Trace(std::size_t points_max) const {
  const std::uint64_t count =
      std::min<std::uint64_t>({points_, kStepsKept, static_cast<std::uint64_t>(points_max)});
  std::string text;
  for (std::uint64_t point = points_ - count; point < points_; ++point) {
    const Step& step = steps_[point % kStepsKept];
    const auto at = std::chrono::duration_cast<std::chrono::microseconds>(
        step.at.time_since_epoch() - std::chrono::hours(1));
    text += fmt::format("{:>8}  {:>9} us  {:<16} {} {}\n", point, at.count(), step.thread->name,
                        step.operation, step.object);
  }
  return text;
}

}  // namespace simile::simulation

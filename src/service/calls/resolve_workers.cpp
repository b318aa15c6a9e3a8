#include "service/calls/resolve_workers.h"

#include <array>
#include <chrono>
#include <utility>

#include <absl/cleanup/cleanup.h>

#include "base/threads.h"

namespace simile::service {

// Is on the stack of the thread that has begun the work.
struct ResolveWorkers::Turn {
  ResolveWorkers& workers;
  WorkNeeds needs;
  Clock::TimePoint began_at;
  std::uint64_t place = 0;  // while it is paused
  std::condition_variable may_go_on{};
};

namespace {

// Work calls LetOthersRun about once a millisecond, so a turn takes 4 ms or little more.
constexpr std::chrono::milliseconds kTurn{3};

}  // namespace

thread_local ResolveWorkers::Turn* ResolveWorkers::turn_of_thread_ = nullptr;

ResolveWorkers::ResolveWorkers(const Options& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      waiting_places_(CallerShares::OfPlaces(options.waiting_max)),
      waiting_bytes_(CallerShares::OfBytes(options.waiting_bytes_max)),
      begun_places_(CallerShares::OfPlaces(options.begun_max)),
      begun_bytes_(CallerShares::OfBytes(options.begun_bytes_max)) {
  // Joins the threads that were started when starting one throws.
  absl::Cleanup end = [this] { End(); };
  threads_.reserve(options.begun_max);
  for (std::size_t i = 0; i < options.begun_max; ++i) threads_.emplace_back([this] { Run(); });
  std::move(end).Cancel();
}

ResolveWorkers::~ResolveWorkers() { End(); }

void ResolveWorkers::End() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ResolveWorkers::Post(std::function<void()> work, const WorkNeeds& needs) {
  const std::lock_guard lock(mutex_);
  if (!waiting_places_.Fits(needs.caller, 1)) return false;
  if (!waiting_bytes_.Fits(needs.caller, needs.waiting_bytes)) return false;
  waiting_.push_back({std::move(work), needs, next_place_++});
  waiting_places_.Add(needs.caller, 1);
  waiting_bytes_.Add(needs.caller, needs.waiting_bytes);
  WakeNext();
  return true;
}

std::string ResolveWorkers::Shortage(const WorkNeeds& needs) const {
  const std::lock_guard lock(mutex_);
  return waiting_places_.Fits(needs.caller, 1)
             ? waiting_bytes_.Shortage(needs.caller, needs.waiting_bytes)
             : waiting_places_.Shortage(needs.caller, 1);
}

void ResolveWorkers::LetOthersRun() {
  if (turn_of_thread_ == nullptr) return;
  Turn& turn = *turn_of_thread_;
  ResolveWorkers& workers = turn.workers;
  if (workers.clock_.Now() - turn.began_at < kTurn) return;
  workers.EndTurn(turn);
  turn.began_at = workers.clock_.Now();
}

void ResolveWorkers::NeedsOnly(std::uint64_t bytes) {
  if (turn_of_thread_ == nullptr) return;
  WorkNeeds& needs = turn_of_thread_->needs;
  if (bytes >= needs.bytes) return;
  ResolveWorkers& workers = turn_of_thread_->workers;
  const std::lock_guard lock(workers.mutex_);
  workers.begun_bytes_.GiveBack(needs.caller, needs.bytes - bytes);
  needs.bytes = bytes;
  workers.WakeNext();
}

ResolveWorkers::Counts ResolveWorkers::counts() const {
  return {waiting_places_.held(), waiting_bytes_.held(), begun_places_.held(), begun_bytes_.held()};
}

void ResolveWorkers::EndTurn(Turn& turn) {
  std::unique_lock lock(mutex_);
  turn.place = next_place_++;
  paused_.push_back(&turn);
  --running_;
  WakeNext();
  turn.may_go_on.wait(lock, [&] { return MayGoOn(turn); });
  paused_.pop_front();
  ++running_;
  WakeNext();
}

std::deque<ResolveWorkers::Waiting>::iterator ResolveWorkers::NextToBegin() {
  // Callers whose work waits for space. When a caller waits that holds none, it waits for the other
  // callers' bytes, and nobody may pass.
  std::array<bool, kCallerKeys> waits_for_space{};
  bool all_wait = false;
  for (auto each = waiting_.begin(); each != waiting_.end(); ++each) {
    const WorkNeeds& needs = each->needs;
    if (begun_places_.held() >= options_.running_max && !begun_places_.Fits(needs.caller, 1)) {
      continue;
    }
    if (needs.bytes == 0) return each;
    if (all_wait || waits_for_space[needs.caller]) continue;
    if (HasSpaceFor(needs)) return each;
    waits_for_space[needs.caller] = true;
    all_wait = begun_bytes_.HeldBy(needs.caller) == 0;
  }
  return waiting_.end();
}

bool ResolveWorkers::HasSpaceFor(const WorkNeeds& needs) const {
  if (begun_bytes_.Fits(needs.caller, needs.bytes)) return true;
  // The first work of a caller needs only free space: it may be larger than the share of the
  // caller.
  return begun_bytes_.HeldBy(needs.caller) == 0 &&
         begun_bytes_.held() + needs.bytes <= options_.begun_bytes_max;
}

bool ResolveWorkers::MayBegin() {
  if (running_ >= options_.running_max) return false;
  const auto next = NextToBegin();
  return next != waiting_.end() && (paused_.empty() || next->place < paused_.front()->place);
}

bool ResolveWorkers::MayGoOn(const Turn& turn) {
  return running_ < options_.running_max && paused_.front() == &turn && !MayBegin();
}

void ResolveWorkers::WakeNext() {
  if (MayBegin()) {
    posted_.notify_one();
  } else if (!paused_.empty() && running_ < options_.running_max) {
    paused_.front()->may_go_on.notify_one();
  }
}

ResolveWorkers::Waiting ResolveWorkers::Begin() {
  const auto next = NextToBegin();
  Waiting begun = std::move(*next);
  waiting_.erase(next);
  const WorkNeeds& needs = begun.needs;
  waiting_places_.GiveBack(needs.caller, 1);
  waiting_bytes_.GiveBack(needs.caller, needs.waiting_bytes);
  begun_places_.Add(needs.caller, 1);
  begun_bytes_.Add(needs.caller, needs.bytes);
  ++running_;
  return begun;
}

void ResolveWorkers::End(const WorkNeeds& needs) {
  --running_;
  begun_places_.GiveBack(needs.caller, 1);
  begun_bytes_.GiveBack(needs.caller, needs.bytes);
}

void ResolveWorkers::Run() {
  base::NameThread("simile-resolve");
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return MayBegin() || (ending_ && waiting_.empty()); });
    if (waiting_.empty()) return;
    Waiting begun = Begin();
    WakeNext();
    if (ending_ && waiting_.empty()) posted_.notify_all();
    lock.unlock();
    Turn turn{*this, begun.needs, clock_.Now()};
    turn_of_thread_ = &turn;
    begun.work();
    begun.work = nullptr;  // without the lock: freeing what the work kept may take long
    turn_of_thread_ = nullptr;
    lock.lock();
    End(turn.needs);
    WakeNext();
  }
}

}  // namespace simile::service

#include "service/resolve_workers.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace simile::service {

// Is on the stack of the thread that has begun the work.
struct ResolveWorkers::Turn {
  ResolveWorkers& workers;
  Clock::TimePoint began_at;
  std::uint64_t place = 0;  // while it is paused
  std::condition_variable may_go_on{};
};

namespace {

// Work asks about once a millisecond, so a turn takes 4 ms or little more.
constexpr std::chrono::milliseconds kTurn{3};

}  // namespace

thread_local ResolveWorkers::Turn* ResolveWorkers::turn_of_thread_ = nullptr;

ResolveWorkers::ResolveWorkers(const Options& options, const Clock& clock)
    : options_(options), clock_(clock) {
  threads_.reserve(options.begun_max);
  for (std::size_t i = 0; i < options.begun_max; ++i) threads_.emplace_back([this] { Run(); });
}

ResolveWorkers::~ResolveWorkers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ResolveWorkers::Post(std::function<void()> work, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= options_.waiting_max) return false;
  waiting_.push_back({std::move(work), bytes, next_place_++});
  WakeNext();
  return true;
}

void ResolveWorkers::LetOthersRun() {
  if (turn_of_thread_ == nullptr) return;
  Turn& turn = *turn_of_thread_;
  ResolveWorkers& workers = turn.workers;
  if (workers.clock_.Now() - turn.began_at < kTurn) return;
  workers.EndTurn(turn);
  turn.began_at = workers.clock_.Now();
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
  return std::ranges::find_if(waiting_, [this](const Waiting& each) {
    return each.bytes == 0 || begun_bytes_ == 0 ||
           begun_bytes_ + each.bytes <= options_.begun_bytes_max;
  });
}

bool ResolveWorkers::MayBegin() {
  if (running_ >= options_.running_max || begun_ >= options_.begun_max) return false;
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

void ResolveWorkers::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return MayBegin() || (ending_ && waiting_.empty()); });
    if (waiting_.empty()) return;
    const auto next = NextToBegin();
    const std::function<void()> work = std::move(next->work);
    const std::uint64_t bytes = next->bytes;
    waiting_.erase(next);
    begun_bytes_ += bytes;
    ++begun_;
    ++running_;
    WakeNext();
    if (ending_ && waiting_.empty()) posted_.notify_all();
    lock.unlock();
    {
      Turn turn{*this, clock_.Now()};
      turn_of_thread_ = &turn;
      work();
      turn_of_thread_ = nullptr;
    }
    lock.lock();
    --running_;
    --begun_;
    begun_bytes_ -= bytes;
    WakeNext();
  }
}

}  // namespace simile::service

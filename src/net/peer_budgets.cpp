#include "net/peer_budgets.h"

#include <algorithm>

namespace simile::net {
namespace {

constexpr std::size_t kFirstSweep = 1'024;

}  // namespace

void PeerBudget::Part::Release(std::uint64_t bytes) {
  if (bytes == 0) return;
  bytes_ -= bytes;
  of_->Release(bytes, kind_);
}

// A call that is begun and reset costs this server some 10 us. Clients whose deadlines pass reset
// their calls, too.
PeerBudget::PeerBudget(const Limits& limits, const Clock& clock)
    : bytes_max_(limits.unfinished_bytes_per_peer_max),
      clock_(clock),
      resets_({2.0 * limits.resets_per_second_max, 1.0 * limits.resets_per_second_max},
              clock.Now()),
      empty_frames_(
          {10.0 * limits.empty_frames_per_second_max, 1.0 * limits.empty_frames_per_second_max},
          clock.Now()) {}

bool PeerBudget::Hold(std::uint64_t bytes, Kind kind, Part& part, const EventLoop::Task* task) {
  if (kind == Kind::kMessages && is_awaited_ && HasOtherWaiters(task)) return false;
  // Waiting calls have windows of their own, which fill without anybody's doing.
  const std::uint64_t held_max = kind == Kind::kMessages ? bytes_max_ : bytes_max_ / 2;
  std::atomic<std::uint64_t>& held_of_kind = HeldOf(kind);
  std::uint64_t held = held_of_kind.load();
  do {
    if (held > held_max || bytes > held_max - held) return false;
  } while (!held_of_kind.compare_exchange_weak(held, held + bytes));
  if (part.of_ == nullptr) part.of_ = shared_from_this();
  part.kind_ = kind;
  part.bytes_ += bytes;
  return true;
}

bool PeerBudget::HasOtherWaiters(const EventLoop::Task* task) {
  const std::lock_guard lock(mutex_);
  return !waiters_.empty() && waiters_.front().task != task;
}

void PeerBudget::Release(std::uint64_t bytes, Kind kind) {
  HeldOf(kind).fetch_sub(bytes);
  if (kind == Kind::kWaiting || !is_awaited_) return;
  const std::lock_guard lock(mutex_);
  NotifyFirst();
}

void PeerBudget::NotifyFirst() {
  if (!waiters_.empty()) waiters_.front().loop->Post(*waiters_.front().task);
}

void PeerBudget::Await(EventLoop& loop, EventLoop::Task& task) {
  const std::lock_guard lock(mutex_);
  waiters_.push_back({&loop, &task});
  is_awaited_ = true;
}

void PeerBudget::StopAwaiting(const EventLoop::Task& task) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.task == &task; });
  is_awaited_ = !waiters_.empty();
  NotifyFirst();
}

bool PeerBudget::CountReset() {
  const std::lock_guard lock(mutex_);
  has_resets_ = true;
  return resets_.Spend(clock_);
}

bool PeerBudget::CountEmptyFrame() {
  const std::lock_guard lock(mutex_);
  return empty_frames_.Spend(clock_);
}

void PeerBudget::CountAnswer() {
  if (!has_resets_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  resets_.Give(1);
  has_resets_ = !resets_.full();
}

bool PeerBudget::IsUnused() {
  const std::lock_guard lock(mutex_);
  resets_.Fill(clock_.Now());
  empty_frames_.Fill(clock_.Now());
  return resets_.full() && empty_frames_.full() && held_ == 0 && held_waiting_ == 0;
}

PeerBudgets::PeerBudgets(const Limits& limits, const Clock& clock)
    : limits_(limits), clock_(clock), next_sweep_(kFirstSweep) {}

std::shared_ptr<PeerBudget> PeerBudgets::Of(const PeerKey& peer) {
  const std::lock_guard lock(mutex_);
  if (budgets_.size() >= next_sweep_) ForgetUnused();
  std::shared_ptr<PeerBudget>& budget = budgets_[peer];
  if (budget == nullptr) budget = std::make_shared<PeerBudget>(limits_, clock_);
  return budget;
}

void PeerBudgets::ForgetUnused() {
  std::erase_if(budgets_, [](const auto& entry) {
    return entry.second == nullptr || (entry.second.use_count() == 1 && entry.second->IsUnused());
  });
  next_sweep_ = std::max(kFirstSweep, 2 * budgets_.size());
}

}  // namespace simile::net

#include "net/peer_budgets.h"

#include <algorithm>

namespace simile::net {
namespace {

// A stream that is begun and reset keeps about 20 KB in gRPC until its call has ended there, so a
// peer may leave some 40 MB of them; the server ends several thousand such calls a second. Clients
// whose deadlines pass reset their calls, too.
constexpr Pace kResets{2'000, 1'000};

constexpr std::size_t kFirstSweep = 1'024;

}  // namespace

PeerBudget::PeerBudget(std::uint64_t unfinished_bytes_max, const Clock& clock)
    : unfinished_bytes_max_(unfinished_bytes_max), clock_(clock), resets_(kResets, clock.Now()) {}

bool PeerBudget::Hold(std::uint64_t bytes, Bytes kind) {
  const std::uint64_t reserve = kind == Bytes::kDeclared ? unfinished_bytes_max_ / 8 : 0;
  const std::uint64_t held_max = unfinished_bytes_max_ - reserve;
  std::uint64_t held = held_.load(std::memory_order_relaxed);
  do {
    if (held > held_max || bytes > held_max - held) return false;
  } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
  return true;
}

bool PeerBudget::CountReset() {
  const std::lock_guard lock(mutex_);
  return resets_.Spend(clock_);
}

void PeerBudget::CountAnswer() {
  const std::lock_guard lock(mutex_);
  resets_.Give(1);
}

bool PeerBudget::IsUnused() {
  const std::lock_guard lock(mutex_);
  resets_.Fill(clock_.Now());
  return resets_.full() && held() == 0;
}

PeerBudgets::PeerBudgets(std::uint64_t unfinished_bytes_max, const Clock& clock)
    : unfinished_bytes_max_(unfinished_bytes_max), clock_(clock), next_sweep_(kFirstSweep) {}

std::shared_ptr<PeerBudget> PeerBudgets::Of(const PeerKey& peer) {
  const std::lock_guard lock(mutex_);
  if (budgets_.size() >= next_sweep_) ForgetUnused();
  std::shared_ptr<PeerBudget>& budget = budgets_[peer];
  if (budget == nullptr) {
    budget = std::make_shared<PeerBudget>(unfinished_bytes_max_, clock_);
  }
  return budget;
}

std::size_t PeerBudgets::size() {
  const std::lock_guard lock(mutex_);
  return budgets_.size();
}

void PeerBudgets::ForgetUnused() {
  std::erase_if(budgets_, [](const auto& entry) {
    return entry.second == nullptr || (entry.second.use_count() == 1 && entry.second->IsUnused());
  });
  next_sweep_ = std::max(kFirstSweep, 2 * budgets_.size());
}

}  // namespace simile::net

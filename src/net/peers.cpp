#include "net/peers.h"

#include <netinet/in.h>

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace simile::net {
namespace {

constexpr std::size_t kFirstSweep = 1'024;

}  // namespace

PeerKey PeerKey::Of(const sockaddr_storage& address, unsigned ipv6_bits) {
  assert(ipv6_bits <= kIpv6Bits);
  PeerKey key;
  const auto set = [&key](std::uint8_t family, const std::uint8_t* bytes, std::size_t count) {
    key.bytes_[0] = family;
    std::copy_n(bytes, count, key.bytes_.begin() + 1);
  };
  if (address.ss_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      set(4, v6.s6_addr + 12, 4);
    } else {
      const unsigned whole_bytes = ipv6_bits / 8;
      const unsigned more_bits = ipv6_bits % 8;
      set(6, v6.s6_addr, whole_bytes);
      if (more_bits > 0) {
        key.bytes_[1 + whole_bytes] =
            static_cast<std::uint8_t>(v6.s6_addr[whole_bytes] & (0xFF00U >> more_bits));
      }
    }
  } else if (address.ss_family == AF_INET) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    set(4, reinterpret_cast<const std::uint8_t*>(&v4), 4);
  }
  return key;
}

void PeerBudget::Part::Release(std::uint64_t bytes) {
  if (bytes == 0) return;
  bytes_ -= bytes;
  of_->Release(bytes, kind_);
}

// A call that is begun and reset costs this server about 10 us. Honest clients reset calls, too:
// when a deadline has passed.
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
  // kWaiting gets half: a client fills the first window of a call before it can know that the call
  // waits.
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

Admission ConnectionTable::Admit(const PeerKey& peer, Place& place) {
  assert(place.table_ == nullptr);
  const std::lock_guard lock(mutex_);
  if (open_ >= options_.connections_max) return Admission::kFull;
  if (half_open_ >= options_.half_open_max) return Admission::kHalfOpenFull;
  std::size_t& of_peer = by_peer_[peer];
  if (of_peer >= options_.per_peer_max) return Admission::kPeerFull;
  ++of_peer;
  ++open_;
  ++half_open_;
  place.table_ = this;
  place.peer_ = peer;
  return Admission::kAdmitted;
}

std::size_t ConnectionTable::CountOpen() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

void ConnectionTable::Open() {
  const std::lock_guard lock(mutex_);
  --half_open_;
}

void ConnectionTable::Leave(const PeerKey& peer, bool is_half_open) {
  const std::lock_guard lock(mutex_);
  --open_;
  if (is_half_open) --half_open_;
  const auto found = by_peer_.find(peer);
  if (--found->second == 0) by_peer_.erase(found);
}

}  // namespace simile::net

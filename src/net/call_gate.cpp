#include "net/call_gate.h"

#include <cassert>
#include <utility>

namespace simile::net {

bool CallGate::Enter() {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  ++inside_;
  return true;
}

std::optional<std::uint64_t> CallGate::EnterUntilClosed(std::function<void()> closing) {
  const std::lock_guard lock(mutex_);
  if (closed_) return std::nullopt;
  closing_.emplace(++tickets_, std::move(closing));  // may throw: the call is not inside yet
  ++inside_;
  return tickets_;
}

void CallGate::Leave() {
  const std::lock_guard lock(mutex_);
  LeaveLocked();
}

void CallGate::Leave(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  closing_.erase(ticket);
  LeaveLocked();
}

void CallGate::LeaveLocked() {
  assert(inside_ > 0);
  --inside_;
  // Under the lock: the waiting thread may destroy the gate as soon as it sees it empty.
  if (inside_ == 0) left_.notify_all();
}

void CallGate::Close() {
  std::map<std::uint64_t, std::function<void()>> closing;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    closing.swap(closing_);
  }
  // Without the lock: a call may leave at once.
  for (const auto& [ticket, close] : closing) close();
}

bool CallGate::AwaitEmpty(Clock::Duration timeout) {
  std::unique_lock lock(mutex_);
  return left_.wait_for(lock, timeout, [this] { return inside_ == 0; });
}

std::uint64_t CallGate::inside() const {
  const std::lock_guard lock(mutex_);
  return inside_;
}

}  // namespace simile::net

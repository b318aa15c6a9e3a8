#include "net/call_gate.h"

#include <cassert>

namespace simile::net {

bool CallGate::Enter() {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  ++inside_;
  return true;
}

void CallGate::Leave() {
  const std::lock_guard lock(mutex_);
  assert(inside_ > 0);
  --inside_;
  // Under the lock: the waiting thread may destroy the gate as soon as it sees it empty.
  if (inside_ == 0) left_.notify_all();
}

void CallGate::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
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

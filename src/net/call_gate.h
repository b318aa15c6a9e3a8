#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "simile/clock.h"

namespace simile::net {

// Counts the calls in flight, and admits none after Close, so that a stopping server can wait for
// the rest. Safe to use from any thread.
class CallGate {
 public:
  // Whether the call may start; a call that may must Leave when it ends.
  bool Enter();
  void Leave();

  void Close();  // idempotent
  // Waits until no call is inside. False when `timeout` passes first.
  bool AwaitEmpty(Clock::Duration timeout);
  std::uint64_t inside() const;

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable left_;
  std::uint64_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace simile::net

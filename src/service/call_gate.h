#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "simile/clock.h"

namespace simile::service {

// Counts the calls in flight and, once closed, lets no further one in: what a server that stops
// waits on. Safe to use from any thread.
class CallGate {
 public:
  // False when the gate is closed; true lets the call in, which must Leave.
  bool Enter();
  void Leave();

  void Close();  // idempotent
  // Waits until no call is inside. False when some still are after `patience`.
  bool AwaitEmpty(Clock::Duration patience);
  std::uint64_t inside() const;

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable left_;
  std::uint64_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace simile::service

#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "simile/clock.h"

namespace simile::net {

// Counts the calls in flight, and admits none after Close, so that a stopping server can wait for
// the rest. Safe to use from any thread.
class CallGate {
 public:
  // Whether the call may start; a call that may must Leave when it ends.
  bool Enter();
  void Leave();

  // The same for a call that may stay as long as its caller likes: `closing` is called once when
  // the gate closes before the call leaves, on the thread that closes it, perhaps while the call
  // leaves. Returns a ticket to leave with; nothing when the call may not start.
  std::optional<std::uint64_t> EnterUntilClosed(std::function<void()> closing);
  void Leave(std::uint64_t ticket);

  void Close();  // idempotent
  // Waits until no call is inside. False when `timeout` passes first.
  bool AwaitEmpty(Clock::Duration timeout);
  std::uint64_t inside() const;

 private:
  void LeaveLocked();

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable left_;
  std::uint64_t inside_ = 0;
  std::uint64_t tickets_ = 0;                               // given out
  std::map<std::uint64_t, std::function<void()>> closing_;  // by ticket
  bool closed_ = false;
};

}  // namespace simile::net

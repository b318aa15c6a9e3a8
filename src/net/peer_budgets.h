#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "net/event_loop.h"
#include "net/peer_key.h"
#include "net/token_bucket.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::net {

// What the connections of one peer share, so that it gains nothing by opening more of them. Safe to
// use from any thread.
//
// Two budgets hold what a peer has begun to send. kMessages: messages that arrive or wait for their
// handler, by their declared length. When it is full, a message waits for space: its window does
// not grow, and what arrives of it all the same counts in kWaiting. A call is refused when that is
// full, too.
class PeerBudget : public std::enable_shared_from_this<PeerBudget> {
 public:
  enum class Kind : std::uint8_t { kMessages, kWaiting };

  // Bytes that are counted as long as this exists.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept
        : of_(std::move(other.of_)), kind_(other.kind_), bytes_(std::exchange(other.bytes_, 0)) {}
    Part& operator=(Part&& other) noexcept {
      Release();
      of_ = std::move(other.of_);
      kind_ = other.kind_;
      bytes_ = std::exchange(other.bytes_, 0);
      return *this;
    }
    ~Part() { Release(); }
    void Release() { Release(bytes_); }
    // REQUIRES: no more than it counts
    void Release(std::uint64_t bytes);
    std::uint64_t bytes() const { return bytes_; }

   private:
    friend class PeerBudget;
    std::shared_ptr<PeerBudget> of_;
    Kind kind_ = Kind::kMessages;
    std::uint64_t bytes_ = 0;
  };

  //   clock  borrowed
  PeerBudget(const Limits& limits, const Clock& clock);

  // Counts bytes in the part as well. False, and counts nothing, when the budget does not hold
  // them. kMessages holds nothing while other calls wait for it, unless the task is the first of
  // them.
  //   task  that waits; null for none
  bool Hold(std::uint64_t bytes, Kind kind, Part& part, const EventLoop::Task* task = nullptr);

  // Posts the task when kMessages may have space for it and it is the first task that waits. Hold
  // must be tried once more after Await. May throw bad_alloc.
  void Await(EventLoop& loop, EventLoop::Task& task);
  void StopAwaiting(const EventLoop::Task& task);
  // Whether any call waits for space.
  bool is_awaited() const { return is_awaited_.load(std::memory_order_relaxed); }

  // A call that was begun is reset. False when the peer does that too often.
  bool CountReset();
  // A DATA frame that carries nothing. False when the peer sends them too often.
  bool CountEmptyFrame();
  // A call was answered: one more may be reset.
  void CountAnswer();
  // Whether it is as at the start.
  bool IsUnused();

 private:
  struct Waiter {
    EventLoop* loop;
    EventLoop::Task* task;
  };

  std::atomic<std::uint64_t>& HeldOf(Kind kind) {
    return kind == Kind::kMessages ? held_ : held_waiting_;
  }
  bool HasOtherWaiters(const EventLoop::Task* task);
  void Release(std::uint64_t bytes, Kind kind);
  void NotifyFirst();  // REQUIRES: mutex_ is held

  const std::uint64_t bytes_max_;
  const Clock& clock_;
  std::atomic<std::uint64_t> held_ = 0;
  std::atomic<std::uint64_t> held_waiting_ = 0;
  std::atomic<bool> is_awaited_ = false;
  std::atomic<bool> has_resets_ = false;  // resets_ is not full
  std::mutex mutex_;                      // guards the members below
  std::vector<Waiter> waiters_;           // in the order in which they came
  TokenBucket resets_;
  TokenBucket empty_frames_;
};

// The budgets of all peers. A peer's budget is kept after its last connection until it is full
// again: otherwise a peer would get a fresh budget by reconnecting. Safe to use from any thread.
class PeerBudgets {
 public:
  //   limits, clock  borrowed
  PeerBudgets(const Limits& limits, const Clock& clock);

  // May throw bad_alloc.
  std::shared_ptr<PeerBudget> Of(const PeerKey& peer);

 private:
  void ForgetUnused();

  const Limits& limits_;
  const Clock& clock_;
  std::mutex mutex_;  // guards what follows
  std::map<PeerKey, std::shared_ptr<PeerBudget>> budgets_;
  std::size_t next_sweep_;  // as many budgets
};

}  // namespace simile::net

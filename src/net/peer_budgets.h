#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "net/peer_key.h"
#include "net/token_bucket.h"
#include "simile/clock.h"

namespace simile::net {

// What the connections of one peer share, so that it gains nothing by opening more of them. All
// methods may be called from any thread.
class PeerBudget {
 public:
  //   clock  borrowed
  PeerBudget(std::uint64_t unfinished_bytes_max, const Clock& clock);

  // Counts bytes of messages that have not arrived as a whole. False, and counts nothing, when the
  // budget does not hold so many more: of those that may come (kDeclared), which can be refused, up
  // to seven eighths of it, so that something is left for those that have come (kArrived).
  enum class Bytes : std::uint8_t { kDeclared, kArrived };
  bool Hold(std::uint64_t bytes, Bytes kind);
  void Release(std::uint64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  std::uint64_t unfinished_bytes_max() const { return unfinished_bytes_max_; }

  // A call that was begun is reset. False when the peer does that too often.
  bool CountReset();
  // A call was answered: one more may be reset.
  void CountAnswer();
  // Whether it is as at the start.
  bool IsUnused();

 private:
  const std::uint64_t unfinished_bytes_max_;
  const Clock& clock_;
  std::atomic<std::uint64_t> held_ = 0;
  std::mutex mutex_;  // guards resets_
  TokenBucket resets_;
};

// The budgets of all peers. One without connections is kept for as long as it is not as at the
// start: else a peer would get a new one by connecting again. Safe to use from any thread.
class PeerBudgets {
 public:
  PeerBudgets(std::uint64_t unfinished_bytes_max, const Clock& clock);

  std::shared_ptr<PeerBudget> Of(const PeerKey& peer);
  std::size_t size();

 private:
  void ForgetUnused();

  const std::uint64_t unfinished_bytes_max_;
  const Clock& clock_;
  std::mutex mutex_;  // guards what follows
  std::map<PeerKey, std::shared_ptr<PeerBudget>> budgets_;
  std::size_t next_sweep_;  // as many budgets
};

}  // namespace simile::net

#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include <absl/status/status.h>

#include "net/token_bucket.h"
#include "service/access/principal.h"
#include "simile/clock.h"

namespace simile::service {

// What a principal has under way and how often it has called lately. Outlives changes of the access
// file, so that a new one gives nobody a fresh allowance. Safe to use from any thread.
class PrincipalUse {
 public:
  // Counts a call.
  // Errors: CALLER_LIMIT, with when to try again.
  absl::Status CountCall(const Principal& principal, const Clock& clock);
  // Holds so much until it is given back.
  // Errors: CALLER_LIMIT. What alone is more than the limit is refused without a time to try again.
  absl::Status HoldBytes(const Principal& principal, std::uint64_t bytes);
  absl::Status HoldQueries(const Principal& principal, std::uint64_t queries);
  void GiveBack(std::uint64_t bytes, std::uint64_t queries);

  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t queries() const { return queries_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;  // guards calls_
  std::optional<net::TokenBucket> calls_;

  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> queries_ = 0;
};

}  // namespace simile::service

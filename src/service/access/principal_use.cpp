#include "service/access/principal_use.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {
namespace {

constexpr std::chrono::milliseconds kTryAgain{50};

absl::Status Refusal(std::string_view text) {
  return base::Error(base::ErrorReason::kCallerLimit, text);
}

// Adds the amount unless the sum would exceed the maximum.
bool AddWithin(std::atomic<std::uint64_t>& sum, std::uint64_t amount, std::uint64_t max) {
  std::uint64_t before = sum.load(std::memory_order_relaxed);
  do {
    if (amount > max || before > max - amount) return false;
  } while (!sum.compare_exchange_weak(before, before + amount, std::memory_order_relaxed));
  return true;
}

//   unit  "bytes of requests"
absl::Status Hold(std::atomic<std::uint64_t>& sum, std::uint64_t amount, std::uint64_t max,
                  std::string_view name, std::string_view unit) {
  if (max == 0) {
    sum.fetch_add(amount, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  if (AddWithin(sum, amount, max)) return absl::OkStatus();
  if (amount > max) {
    return Refusal(fmt::format("{} {}; {} may have {} in flight: send less a call",
                               base::Grouped(amount), unit, name, base::Grouped(max)));
  }
  return base::WithRetryAfter(
      Refusal(fmt::format("{} may have {} {} in flight, and has {}", name, base::Grouped(max), unit,
                          base::Grouped(sum.load()))),
      kTryAgain);
}

}  // namespace

absl::Status PrincipalUse::CountCall(const Principal& principal, const Clock& clock) {
  const double rate = principal.limits.calls_per_second;
  if (rate == 0) return absl::OkStatus();
  const net::Pace pace{.burst = std::max(1.0, rate), .per_second = rate};
  const std::lock_guard lock(mutex_);
  if (calls_) {
    calls_->SetPace(pace);
  } else {
    calls_.emplace(pace, clock.Now());
  }
  if (calls_->Spend(clock)) return absl::OkStatus();
  return base::WithRetryAfter(
      Refusal(fmt::format("{} may make {:g} calls a second", principal.name, rate)),
      std::chrono::ceil<std::chrono::milliseconds>(calls_->Wait()));
}

absl::Status PrincipalUse::HoldBytes(const Principal& principal, std::uint64_t bytes) {
  return Hold(bytes_, bytes, principal.limits.bytes_in_flight, principal.name, "bytes of requests");
}

absl::Status PrincipalUse::HoldQueries(const Principal& principal, std::uint64_t queries) {
  return Hold(queries_, queries, principal.limits.queries_in_flight, principal.name, "queries");
}

void PrincipalUse::GiveBack(std::uint64_t bytes, std::uint64_t queries) {
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  queries_.fetch_sub(queries, std::memory_order_relaxed);
}

}  // namespace simile::service

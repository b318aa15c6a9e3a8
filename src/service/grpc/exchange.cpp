#include "service/grpc/exchange.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {
namespace {

absl::Status NotReceivedError(net::RpcCall::Problem problem, std::uint32_t declared_bytes) {
  constexpr std::chrono::seconds kRetryAfter{1};
  if (problem == net::RpcCall::Problem::kTooLarge) {
    return base::Error(base::ErrorReason::kOutOfMemory,
                       fmt::format("the request of {} bytes is larger than "
                                   "limits.receive_bytes_max allows; split it into several calls",
                                   base::Grouped(declared_bytes)));
  }
  return base::WithRetryAfter(
      base::Error(base::ErrorReason::kQueueFull,
                  fmt::format("the request of {} bytes was not received: together with others that "
                              "the same address has begun to send it would exceed "
                              "limits.unfinished_bytes_per_peer_max; send fewer at a time",
                              base::Grouped(declared_bytes))),
      kRetryAfter);
}

}  // namespace

Clock::TimePoint Exchange::TakeBy(Clock::TimePoint arrived_at) const {
  constexpr std::chrono::seconds kAtLeast{1};
  return std::max<Clock::TimePoint>(arrived_at + environment().limits.search_deadline_max,
                                    environment().clock.Now() + kAtLeast);
}

bool Exchange::Make() {
  if (method_.counts_in_flight()) environment().metrics.AddRequestsInFlight(1);
  is_made_ = true;
  const absl::Status made = Guarded([this] { MakeCall(); });
  has_failed_ = !made.ok();
  if (has_failed_) Finish(nullptr, OutOfMemoryEnd(), TakeBy(environment().clock.Now()));
  return !has_failed_;
}

void Exchange::Begin(net::ReceivedMessage request) {
  if (!Make()) return;
  const absl::Status begun = Guarded([&] { return BeginWith(std::move(request)); });
  if (!begun.ok()) Reject(begun);
}

void Exchange::Refused(Problem problem, std::uint32_t declared_bytes) {
  if (has_failed_ || (!is_made_ && !Make())) return;
  Reject(Guarded([&] { return NotReceivedError(problem, declared_bytes); }));
}

void Exchange::Gone() {
  if (has_failed_) return;
  cancelled_.request_stop();
  OnCallerGone();
}

void Exchange::Stop() {
  if (is_made_ && !has_failed_) OnStop();
}

void Exchange::Release() {
  if (is_made_ && method_.counts_in_flight()) environment().metrics.AddRequestsInFlight(-1);
  Destroy();
}

}  // namespace simile::service

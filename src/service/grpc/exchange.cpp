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

void Exchange::Begin(net::ReceivedMessage request) {
  const absl::Status begun = Guarded([&] { return BeginWith(std::move(request)); });
  if (!begun.ok()) Reject(begun);
}

void Exchange::Refused(Problem problem, std::uint32_t declared_bytes) {
  Reject(Guarded([&] { return NotReceivedError(problem, declared_bytes); }));
}

void Exchange::Gone() {
  cancelled_.request_stop();
  OnCallerGone();
}

}  // namespace simile::service

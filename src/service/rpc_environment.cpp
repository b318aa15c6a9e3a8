#include "service/rpc_environment.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error_detail.h"
#include "service/call_work.h"

namespace simile::service {

Clock::TimePoint TakenBy(const RpcEnvironment& environment, Clock::TimePoint arrived_at) {
  constexpr std::chrono::seconds kMoment{1};
  return std::max<Clock::TimePoint>(arrived_at + environment.limits.search_deadline_max,
                                    environment.clock.Now() + kMoment);
}

absl::Status PostToWorkers(RpcEnvironment& environment, std::function<void()> work,
                           std::uint64_t bytes) {
  if (environment.workers.Post(std::move(work), bytes)) return absl::OkStatus();
  const absl::Status full = WorkersFullError();
  CountRefusal(environment, full);
  return full;
}

void CountRefusal(RpcEnvironment& environment, const absl::Status& status) {
  if (status.ok() || base::ReasonOf(status) != base::ErrorReason::kQueueFull) return;
  environment.metrics.CountRejected(observe::Rejection::kQueueFull);
}

absl::Status CallerGoneError() {
  return base::Error(base::ErrorReason::kCancelled,
                     "the caller gave up before the answer was sent");
}

absl::Status StoppingError() {
  return base::Error(base::ErrorReason::kStopping,
                     "the server is stopping; retry on another server, or later");
}

}  // namespace simile::service

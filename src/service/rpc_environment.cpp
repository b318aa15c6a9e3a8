#include "service/rpc_environment.h"

#include <algorithm>
#include <chrono>

#include "base/error_detail.h"

namespace simile::service {

Clock::TimePoint TakeDeadline(const RpcEnvironment& environment, Clock::TimePoint arrived_at) {
  constexpr std::chrono::seconds kMoment{1};
  return std::max<Clock::TimePoint>(arrived_at + environment.limits.search_deadline_max,
                                    environment.clock.Now() + kMoment);
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

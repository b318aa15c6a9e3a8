#include "service/call_work.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "engine/search/call_context.h"

namespace simile::service {

base::LongWork MakeLongWork(const AnyCall& call, Clock::TimePoint deadline, const Clock& clock,
                            std::string_view step) {
  const engine::CallContext context(call.cancelled(), deadline, clock);
  return base::LongWork([context, step] {
    ResolveWorkers::LetOthersRun();
    return context.Check(step);
  });
}

base::LongWork MakeLongWork(const AnyCall& call, const Clock& clock, std::string_view step) {
  return MakeLongWork(call, call.deadline().value_or(Clock::TimePoint::max()), clock, step);
}

absl::Status PostToWorkers(ResolveWorkers& workers, std::function<void()> work,
                           const WorkNeeds& needs) {
  constexpr std::chrono::milliseconds kRetryAfter{100};
  if (workers.Post(std::move(work), needs)) return absl::OkStatus();
  return base::WithRetryAfter(
      base::Error(base::ErrorReason::kQueueFull,
                  fmt::format("too many calls wait for a resolve worker: {}; send fewer at a time, "
                              "or to another server",
                              workers.Shortage(needs))),
      kRetryAfter);
}

void CountRefusal(observe::Metrics& metrics, const absl::Status& status) {
  if (status.ok()) return;
  switch (base::ReasonOf(status)) {
    case base::ErrorReason::kQueueFull:
      return metrics.CountRejected(observe::Rejection::kQueueFull);
    case base::ErrorReason::kDeadlineExceeded:
      return metrics.CountRejected(observe::Rejection::kDeadline);
    case base::ErrorReason::kCancelled:
      return metrics.CountRejected(observe::Rejection::kCancelled);
    default:
      return;
  }
}

}  // namespace simile::service

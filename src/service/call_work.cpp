#include "service/call_work.h"

#include <chrono>

#include "base/error_detail.h"
#include "engine/search/call_context.h"
#include "service/resolve_workers.h"

namespace simile::service {

base::LongWork WorkOf(const AnyCall& call, Clock::TimePoint deadline, const Clock& clock,
                      std::string_view step) {
  const engine::CallContext context(call.cancelled(), deadline, clock);
  return base::LongWork([context, step] {
    ResolveWorkers::LetOthersRun();
    return context.Check(step);
  });
}

base::LongWork WorkOf(const AnyCall& call, const Clock& clock, std::string_view step) {
  return WorkOf(call, call.deadline().value_or(Clock::TimePoint::max()), clock, step);
}

absl::Status WorkersFullError() {
  constexpr std::chrono::milliseconds kRetryAfter{100};
  return base::WithRetryAfter(
      base::Error(base::ErrorReason::kQueueFull,
                  "too many calls wait to be looked at; try again, or on another server"),
      kRetryAfter);
}

}  // namespace simile::service

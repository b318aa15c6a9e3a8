#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <absl/status/status.h>

#include "base/long_work.h"
#include "observe/metrics.h"
#include "service/call.h"
#include "service/resolve_workers.h"
#include "simile/clock.h"

namespace simile::service {

// Makes the long work of a call on a worker. After each piece other calls may run. The work ends
// when the caller is gone or the deadline has passed. Borrows the clock.
//   step  what the call has not reached when its work ends, for the message; static storage
// Errors of the work: CANCELLED, DEADLINE_EXCEEDED.
base::LongWork MakeLongWork(const AnyCall& call, Clock::TimePoint deadline, const Clock& clock,
                            std::string_view step);
// The same with the caller's deadline, if the caller has set one.
base::LongWork MakeLongWork(const AnyCall& call, const Clock& clock, std::string_view step);

// Has a worker run a part of a call. Errors: kQueueFull.
absl::Status PostToWorkers(ResolveWorkers& workers, std::function<void()> work,
                           const WorkNeeds& needs);

// Counts a call as rejected if its error is a full queue, a passed deadline or a cancellation.
void CountRefusal(observe::Metrics& metrics, const absl::Status& status);

}  // namespace simile::service

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

// The long work of a call on a worker: after each piece it lets other calls run, and ends when the
// caller is gone or its deadline has passed. Borrows the clock.
//   step  what the call has not reached then, for the message; static storage
// Errors of the work: CANCELLED, DEADLINE_EXCEEDED.
base::LongWork MakeLongWork(const AnyCall& call, Clock::TimePoint deadline, const Clock& clock,
                            std::string_view step);
// The same until the caller's deadline, if it has one.
base::LongWork MakeLongWork(const AnyCall& call, const Clock& clock, std::string_view step);

// Has a worker run a part of a call. Errors: kQueueFull.
absl::Status PostToWorkers(ResolveWorkers& workers, std::function<void()> work,
                           const WorkNeeds& needs);

// Counts a call that is answered by this error among the rejected ones, if it is one of those.
void CountRefusal(observe::Metrics& metrics, const absl::Status& status);

}  // namespace simile::service

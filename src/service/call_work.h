#pragma once

#include <string_view>

#include <absl/status/status.h>

#include "base/long_work.h"
#include "service/call.h"
#include "simile/clock.h"

namespace simile::service {

// The long work of a call on a worker: after each piece it lets other calls run, and ends when the
// caller is gone or its deadline has passed. Borrows the clock.
//   step  what the call has not reached then, for the message; static storage
// Errors of the work: CANCELLED, DEADLINE_EXCEEDED.
base::LongWork WorkOf(const AnyCall& call, Clock::TimePoint deadline, const Clock& clock,
                      std::string_view step);
// The same until the caller's deadline, if it has one.
base::LongWork WorkOf(const AnyCall& call, const Clock& clock, std::string_view step);

// QUEUE_FULL: the resolve workers take no more work.
absl::Status WorkersFullError();

}  // namespace simile::service

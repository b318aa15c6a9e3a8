#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <absl/status/status.h>

#include "observe/failure_lines.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "service/request_id.h"
#include "service/resolve_workers.h"
#include "service/unsent_replies.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::service {

// What a call of any method needs to be counted, timed, logged and run.
struct RpcEnvironment {
  const Clock& clock;
  const observe::Logger& log;
  observe::FailureLines& failure_lines;
  observe::Metrics& metrics;
  const Limits& limits;
  bool log_requests = false;  // also log a line for every successful call
  RequestIds request_ids;
  ResolveWorkers workers;
  const std::shared_ptr<UnsentReplies> unsent_replies = std::make_shared<UnsentReplies>();
};

// When the caller of a call must have taken its reply, which is sent from now on: the longest
// deadline after its arrival, or a moment from now when that is later.
Clock::TimePoint TakenBy(const RpcEnvironment& environment, Clock::TimePoint arrived_at);

// Has a worker run a part of a call. Errors: kQueueFull, which is counted.
//   bytes  as ResolveWorkers::Post
absl::Status PostToWorkers(RpcEnvironment& environment, std::function<void()> work,
                           std::uint64_t bytes = 0);

// Counts a call that is answered by this error among the rejected ones, if it is kQueueFull.
void CountRefusal(RpcEnvironment& environment, const absl::Status& status);

// kCancelled, of calls whose callers are gone.
absl::Status CallerGoneError();
// kStopping, of calls that come after the server began to stop.
absl::Status StoppingError();

}  // namespace simile::service

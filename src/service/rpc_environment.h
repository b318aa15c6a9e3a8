#pragma once

#include <memory>

#include <absl/status/status.h>

#include "observe/audit_log.h"
#include "observe/failure_lines.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "service/access/access_control.h"
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
  observe::AuditLog& audit;
  observe::Metrics& metrics;
  const Limits& limits;
  AccessControl& access;
  bool log_requests = false;  // also log a line for every successful call
  RequestIds request_ids;
  ResolveWorkers workers;
  const std::shared_ptr<UnsentReplies> unsent_replies =
      std::make_shared<UnsentReplies>(limits.unsent_bytes_max);
};

// kCancelled, of calls whose callers are gone.
absl::Status CallerGoneError();
// kStopping, of calls that come after the server began to stop.
absl::Status StoppingError();

}  // namespace simile::service

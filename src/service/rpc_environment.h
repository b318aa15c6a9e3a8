#pragma once

#include <absl/status/status.h>

#include "net/call_gate.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "service/request_id.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::service {

// What a call of any method needs to be admitted, counted, timed and logged.
struct RpcEnvironment {
  const Clock& clock;
  const observe::Logger& log;
  observe::Metrics& metrics;
  const Limits& limits;
  bool log_requests = false;  // also log a line for every successful call
  RequestIds request_ids;
  net::CallGate gate;

  // Admits and counts a call, which must Leave when it ends. Errors: kStopping.
  absl::Status Enter();
  void Leave();
};

// kStopping, of calls that come after the server began to stop.
absl::Status StoppingError();

}  // namespace simile::service

#pragma once

#include "net/call_gate.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "service/request_id.h"
#include "simile/clock.h"

namespace simile::service {

// What UnaryReactor needs to admit, count, time and log a call of any method.
struct RpcEnvironment {
  const Clock& clock;
  const observe::Logger& log;
  observe::Metrics& metrics;
  bool log_requests = false;  // also log a line for every successful call
  RequestIds request_ids;
  net::CallGate gate;
};

}  // namespace simile::service

#pragma once

#include "observe/log.h"
#include "observe/metrics.h"
#include "service/call_gate.h"
#include "service/request_id.h"
#include "simile/clock.h"

namespace simile::service {

// What every call, whatever its method, is counted, timed and logged with.
struct RpcEnvironment {
  const Clock& clock;
  const observe::Logger& log;
  observe::Metrics& metrics;
  bool log_requests = false;  // one line for every served call, too
  RequestIds request_ids;
  CallGate gate;
};

}  // namespace simile::service

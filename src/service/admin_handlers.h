#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "observe/metric_samples.h"
#include "service/calls/call.h"
#include "service/replies/collection_message.h"
#include "service/self_examination.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::v1 {
class DiagnoseResponse;
class GetServerInfoResponse;
class GetStatsResponse;
}  // namespace simile::v1

namespace simile::service {

// What the handlers of AdminService use. Owned by wiring.
struct AdminParts {
  const ServingBackend& backend;
  const Limits& limits;
  const Clock& clock;
  bool changes_allowed = false;
  bool admin_allowed = false;  // GetStats and Diagnose
  std::chrono::system_clock::time_point started_at;
  Clock::TimePoint started;  // the same moment by the monotonic clock
  // Reads the metrics. The argument proves that the caller may see them.
  std::function<std::vector<observe::MetricSample>(const PermittedServer&)> read_metrics;
  SelfExamination& examination;
};

// None throws. GetServerInfo and GetStats finish the call before they return; Diagnose finishes it
// when its probes have ended. Diagnose and GetStats answer ADMIN_NOT_ALLOWED unless
// parts.admin_allowed.
void HandleGetServerInfo(const AdminParts& parts, Call& call, v1::GetServerInfoResponse& response);
void HandleDiagnose(const AdminParts& parts, Call& call, v1::DiagnoseResponse& response);
void HandleGetStats(const AdminParts& parts, Call& call, v1::GetStatsResponse& response);

// One of the limits, as GetServerInfo reports it.
struct LimitValue {
  std::string name;  // as the member of Limits, times with `_ms`
  std::uint64_t value = 0;
};

// All limits, in the order of their declaration.
std::vector<LimitValue> LimitValues(const Limits& limits);

}  // namespace simile::service

#pragma once

#include "observe/metrics.h"
#include "service/call.h"
#include "service/served_snapshots.h"
#include "simile/clock.h"
#include "simile/limits.h"

namespace simile::v1 {
class FetchRequest;
class LookupRequest;
}  // namespace simile::v1

namespace simile::service {

// What the handlers of LookupService use. Owned by wiring.
struct LookupParts {
  const Clock& clock;
  const ServedSnapshots& snapshots;
  const Limits& limits;
  observe::Metrics& metrics;
};

// The methods of LookupService. Neither throws; both finish their call before they return.
void HandleFetch(const LookupParts& parts, Call& call, const v1::FetchRequest& request);
void HandleLookup(const LookupParts& parts, Call& call, const v1::LookupRequest& request);

}  // namespace simile::service

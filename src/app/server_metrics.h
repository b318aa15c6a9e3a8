#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/queue/executor.h"
#include "engine/snapshots/snapshot_store.h"
#include "observe/log.h"
#include "observe/scrape_sources.h"
#include "service/access/access_control.h"
#include "service/grpc/rpc_services.h"
#include "simile/limits.h"

namespace simile::app {

// Finds the callers that get no answers from a collection, because their required filter cannot be
// applied to it (engine::CheckCallerFilter). Logs a line for each and counts them in a metric.
// Looks again when the access file or a collection has changed. Safe to use from any thread.
class RefusedCallers {
 public:
  // All borrowed.
  RefusedCallers(const engine::SnapshotStore& store, const service::AccessControl& access,
                 const observe::Logger& log)
      : store_(store), access_(access), log_(log) {}

  // To be called once all collections are loaded, and then about once a second. Cost: nothing while
  // nothing has changed, else reading principals * collections filters.
  void Look();
  // simile_refused_callers{collection}, of the last Look.
  std::vector<observe::ScrapedMetric> Metrics() const;

 private:
  using Collections = std::vector<std::pair<std::string, std::uint64_t>>;  // name and version

  const engine::SnapshotStore& store_;
  const service::AccessControl& access_;
  const observe::Logger& log_;
  std::mutex look_mutex_;  // guards the next three members
  std::shared_ptr<const service::AccessPolicy> policy_;
  Collections collections_;
  std::set<std::string> reported_;               // refusals that are in the log
  mutable std::mutex mutex_;                     // guards counts_
  std::map<std::string, std::uint64_t> counts_;  // callers by collection
};

// What waits and runs now, for a scrape: simile_queue_depth{lane}, simile_queue_running{lane},
// simile_queue_large{lane}, simile_queue_wait_estimated_seconds{lane}, simile_resolve_waiting,
// simile_resolve_begun, simile_budget_bytes{budget} and simile_budget_bytes_max{budget}.
std::vector<observe::ScrapedMetric> QueueMetrics(const engine::ExecutorCounts& queue,
                                                 const service::RpcServices::Counts& services,
                                                 const Limits& limits);

}  // namespace simile::app

#pragma once

#include <vector>

#include "engine/queue/executor.h"
#include "observe/scrape_sources.h"
#include "service/rpc_services.h"
#include "simile/limits.h"

namespace simile::app {

// What waits and runs now, for a scrape: simile_queue_depth{lane}, simile_queue_running{lane},
// simile_queue_large{lane}, simile_queue_wait_estimated_seconds{lane}, simile_resolve_waiting,
// simile_resolve_begun, simile_budget_bytes{budget} and simile_budget_bytes_max{budget}.
std::vector<observe::ScrapedMetric> QueueMetrics(const engine::ExecutorCounts& queue,
                                                 const service::RpcServices::Counts& services,
                                                 const Limits& limits);

}  // namespace simile::app

#pragma once

#include <vector>

#include "engine/queue/executor.h"
#include "observe/scrape_sources.h"

namespace simile::app {

// What waits and runs now, for a scrape: simile_queue_depth{lane}, simile_queue_running{lane},
// simile_queue_oversize{lane}, simile_queue_wait_estimated_seconds{lane} and simile_queue_bytes.
std::vector<observe::ScrapedMetric> QueueMetrics(const engine::ExecutorCounts& counts);

}  // namespace simile::app

#include "app/queue_metrics.h"

#include <cstddef>
#include <string>

#include "engine/queue/lane.h"

namespace simile::app {
namespace {

// A gauge of every lane.
struct LaneGauge {
  const char* name;
  const char* help;
  double (*read)(const engine::LaneCounts& lane);
};

constexpr LaneGauge kLaneGauges[] = {
    {"simile_queue_depth", "Queries waiting in the queue now.",
     [](const engine::LaneCounts& lane) {
       return static_cast<double>(lane.waiting - lane.oversize_waiting);
     }},
    {"simile_queue_running", "Queries begun and not yet answered.",
     [](const engine::LaneCounts& lane) { return static_cast<double>(lane.running); }},
    {"simile_queue_oversize", "Queries of a large call that wait beside the queue.",
     [](const engine::LaneCounts& lane) { return static_cast<double>(lane.oversize_waiting); }},
    {"simile_queue_wait_estimated_seconds", "About how long what waits now takes to be answered.",
     [](const engine::LaneCounts& lane) {
       return static_cast<double>(lane.wait_ms_estimated) / 1000;
     }},
};

}  // namespace

std::vector<observe::ScrapedMetric> QueueMetrics(const engine::ExecutorCounts& counts) {
  std::vector<observe::ScrapedMetric> metrics;
  for (const LaneGauge& gauge : kLaneGauges) {
    for (std::size_t lane = 0; lane < engine::kLaneCount; ++lane) {
      metrics.push_back({.name = gauge.name,
                         .help = gauge.help,
                         .labels = {{"lane", std::string(engine::kLaneNames[lane])}},
                         .value = gauge.read(counts.lanes[lane])});
    }
  }
  metrics.push_back({.name = "simile_queue_bytes",
                     .help = "Memory of the requests that wait or run.",
                     .labels = {},
                     .value = static_cast<double>(counts.queue_bytes)});
  return metrics;
}

}  // namespace simile::app

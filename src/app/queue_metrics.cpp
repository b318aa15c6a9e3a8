#include "app/queue_metrics.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "engine/queue/schedule.h"

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
       return static_cast<double>(lane.waiting - lane.large_waiting);
     }},
    {"simile_queue_running", "Queries begun and not yet answered.",
     [](const engine::LaneCounts& lane) { return static_cast<double>(lane.running); }},
    {"simile_queue_large", "Queries of large calls, which wait beside the queue.",
     [](const engine::LaneCounts& lane) { return static_cast<double>(lane.large_waiting); }},
    {"simile_queue_wait_estimated_seconds", "About how long what waits now takes to be answered.",
     [](const engine::LaneCounts& lane) {
       return static_cast<double>(lane.wait_ms_estimated) / 1000;
     }},
};

observe::ScrapedMetric Gauge(const char* name, const char* help, std::uint64_t value) {
  return {.name = name, .help = help, .labels = {}, .value = static_cast<double>(value)};
}

// Memory of calls, and how much there may be.
struct Budget {
  const char* name;
  std::uint64_t bytes;
  std::uint64_t bytes_max;
};

void AddBudgets(std::initializer_list<Budget> budgets,
                std::vector<observe::ScrapedMetric>& metrics) {
  for (const bool is_max : {false, true}) {
    for (const Budget& budget : budgets) {
      metrics.push_back(is_max ? Gauge("simile_budget_bytes_max",
                                       "How much memory of calls there may be.", budget.bytes_max)
                               : Gauge("simile_budget_bytes",
                                       "Memory that calls take now, by what for.", budget.bytes));
      metrics.back().labels = {{"budget", budget.name}};
    }
  }
}

}  // namespace

std::vector<observe::ScrapedMetric> QueueMetrics(const engine::ExecutorCounts& queue,
                                                 const service::RpcServices::Counts& services,
                                                 const Limits& limits) {
  std::vector<observe::ScrapedMetric> metrics;
  for (const LaneGauge& gauge : kLaneGauges) {
    for (std::size_t lane = 0; lane < engine::kLaneCount; ++lane) {
      metrics.push_back({.name = gauge.name,
                         .help = gauge.help,
                         .labels = {{"lane", std::string(engine::kLaneNames[lane])}},
                         .value = gauge.read(queue.lanes[lane])});
    }
  }
  metrics.push_back(Gauge("simile_queue_paused_bytes",
                          "Memory that passes under way hold between their slices.",
                          queue.paused_bytes));
  const service::ResolveWorkers::Counts& resolve = services.resolve;
  metrics.push_back(
      Gauge("simile_resolve_waiting", "Calls that wait for a resolve worker.", resolve.waiting));
  metrics.push_back(
      Gauge("simile_resolve_begun", "Calls that resolve workers have begun.", resolve.begun));
  AddBudgets({{"queue", queue.queue_bytes, limits.queue_bytes_max},
              {"resolve_waiting", resolve.waiting_bytes, limits.resolve_bytes_max},
              {"resolve_begun", resolve.begun_bytes, limits.resolve_bytes_max},
              {"unsent_replies", services.unsent_bytes, limits.unsent_bytes_max}},
             metrics);
  return metrics;
}

}  // namespace simile::app

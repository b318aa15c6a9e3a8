#include "app/server_metrics.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "engine/query/existing_items.h"
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

// A budget of memory for calls: its bytes now and at most.
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

void RefusedCallers::Look() {
  const std::lock_guard look_lock(look_mutex_);
  const std::shared_ptr<const service::AccessPolicy> policy = access_.policy();
  const std::vector<engine::CollectionStatus> served = store_.List();
  Collections collections;
  for (const engine::CollectionStatus& status : served) {
    if (status.snapshot) collections.emplace_back(status.name, status.snapshot->version);
  }
  if (policy == policy_ && collections == collections_) return;
  std::set<std::string> refusals;
  std::map<std::string, std::uint64_t> counts;
  for (const engine::CollectionStatus& status : served) {
    if (status.snapshot == nullptr) continue;
    std::uint64_t& count = counts[status.name];
    if (policy == nullptr) continue;
    for (const service::PrincipalPtr& principal : policy->principals()) {
      if (principal->required_filter.empty() || !principal->MaySee(status.name)) continue;
      base::LongWork work([] { return absl::OkStatus(); });
      const absl::Status fits =
          engine::CheckCallerFilter(*status.snapshot, principal->required_filter, work);
      if (fits.ok()) continue;
      ++count;
      std::string refusal =
          fmt::format("{}\n{}\n{}", principal->name, status.name,
                      std::string_view(fits.message().data(), fits.message().size()));
      const bool is_new = !reported_.contains(refusal);
      refusals.insert(std::move(refusal));
      if (!is_new) continue;
      log_.Warn("a caller is answered nothing: its required filter does not fit the collection",
                {{"principal", principal->name},
                 {"collection", status.name},
                 {"error", std::string_view(fits.message().data(), fits.message().size())}});
    }
  }
  policy_ = policy;
  collections_ = std::move(collections);
  reported_ = std::move(refusals);
  const std::lock_guard lock(mutex_);
  counts_ = std::move(counts);
}

std::vector<observe::ScrapedMetric> RefusedCallers::Metrics() const {
  std::vector<observe::ScrapedMetric> metrics;
  const std::lock_guard lock(mutex_);
  for (const auto& [collection, count] : counts_) {
    metrics.push_back({.name = "simile_refused_callers",
                       .help = "Callers whose required filter does not fit the collection.",
                       .is_counter = false,
                       .labels = {{"collection", collection}},
                       .value = static_cast<double>(count)});
  }
  return metrics;
}

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

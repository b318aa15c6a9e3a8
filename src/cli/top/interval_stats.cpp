#include "cli/top/interval_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "cli/wire_names.h"

namespace simile::cli::top {
namespace {

using Buckets = std::vector<std::pair<double, double>>;

constexpr std::string_view kCalls = "rpc_server_call_duration_seconds";
constexpr std::string_view kOwnMethod = "simile.v1.AdminService/GetStats";
constexpr std::string_view kSearchService = "simile.v1.SearchService/";

double ToSeconds(std::uint64_t time_us) { return static_cast<double>(time_us) / 1e6; }

// A metric's name and labels as one text.
std::string MakeMetricKey(const v1::MetricValue& metric) {
  std::string key = metric.name();
  for (const auto& [label, value] :
       std::map<std::string, std::string>(metric.labels().begin(), metric.labels().end())) {
    key.append("\n").append(label).append("\n").append(value);
  }
  return key;
}

// The observations of a histogram in an interval.
struct Distribution {
  double count = 0;
  double sum = 0;
  Buckets buckets;

  void Add(const v1::Histogram& histogram, double sign) {
    count += sign * static_cast<double>(histogram.count());
    sum += sign * histogram.sum();
    buckets.resize(std::max(buckets.size(), static_cast<std::size_t>(histogram.buckets_size())));
    for (int i = 0; i < histogram.buckets_size(); ++i) {
      std::pair<double, double>& bucket = buckets[static_cast<std::size_t>(i)];
      bucket.first = histogram.buckets(i).upper_bound();
      bucket.second += sign * static_cast<double>(histogram.buckets(i).cumulative_count());
    }
  }
  std::optional<Percentiles> percentiles() const {
    const std::optional<double> p50 = Quantile(buckets, 0.5);
    if (!p50) return std::nullopt;
    return Percentiles{*p50, *Quantile(buckets, 0.99)};
  }
};

// Compares two readings of the metrics.
class Readings {
 public:
  Readings(const v1::GetStatsResponse& earlier, const v1::GetStatsResponse& later) : later_(later) {
    const bool same_run = earlier.has_taken_at() &&
                          earlier.started_at().seconds() == later.started_at().seconds() &&
                          earlier.started_at().nanos() == later.started_at().nanos();
    const std::uint64_t from_us = same_run ? earlier.uptime_us() : 0;
    seconds_ = std::max(ToSeconds(later.uptime_us() - from_us), 1e-3);
    if (!same_run) return;
    for (const v1::MetricValue& metric : earlier.metrics())
      earlier_[MakeMetricKey(metric)] = &metric;
  }

  double seconds() const { return seconds_; }

  // Calls use(metric) for each label set of this metric in the later reading.
  template <class Use>
  void ForEach(std::string_view name, Use use) const {
    for (const v1::MetricValue& metric : later_.metrics()) {
      if (metric.name() == name) use(metric);
    }
  }
  // The sum over all label sets in the later reading.
  double Now(std::string_view name) const {
    double sum = 0;
    ForEach(name, [&](const v1::MetricValue& metric) { sum += metric.number(); });
    return sum;
  }
  std::uint64_t CountNow(std::string_view name) const {
    return static_cast<std::uint64_t>(std::max(Now(name), 0.0));
  }
  // A counter's increase per second.
  double PerSecond(const v1::MetricValue& metric) const {
    const auto before = earlier_.find(MakeMetricKey(metric));
    const double from = before == earlier_.end() ? 0 : before->second->number();
    return (metric.number() - from) / seconds_;
  }
  // Adds the observations of a histogram in the interval.
  void AddTo(Distribution& distribution, const v1::MetricValue& metric) const {
    distribution.Add(metric.histogram(), 1);
    const auto before = earlier_.find(MakeMetricKey(metric));
    if (before != earlier_.end()) distribution.Add(before->second->histogram(), -1);
  }
  Distribution Observed(std::string_view name) const {
    Distribution observed;
    ForEach(name, [&](const v1::MetricValue& metric) { AddTo(observed, metric); });
    return observed;
  }
  // The values of a counter by one of its labels; leaves out values that are 0.
  std::vector<ReasonStats> Reasons(std::string_view name, const char* label) const {
    std::vector<ReasonStats> reasons;
    ForEach(name, [&](const v1::MetricValue& metric) {
      if (metric.number() <= 0) return;
      reasons.push_back(
          {LabelOf(metric, label), PerSecond(metric), static_cast<std::uint64_t>(metric.number())});
    });
    return reasons;
  }

 private:
  const v1::GetStatsResponse& later_;
  std::map<std::string, const v1::MetricValue*> earlier_;
  double seconds_ = 0;
};

struct MethodSums {
  Distribution calls;
  double errors = 0;
  double queries_per_s = 0;
};

void ReadCalls(const Readings& readings, IntervalStats& stats) {
  std::map<std::string, MethodSums> methods;
  Distribution searches;
  readings.ForEach(kCalls, [&](const v1::MetricValue& metric) {
    const std::string method = LabelOf(metric, "rpc_method");
    if (method == kOwnMethod) return;
    Distribution calls;
    readings.AddTo(calls, metric);
    MethodSums& sums = methods[method];
    readings.AddTo(sums.calls, metric);
    if (LabelOf(metric, "rpc_response_status_code") != "OK") sums.errors += calls.count;
    if (method.starts_with(kSearchService)) readings.AddTo(searches, metric);
  });
  readings.ForEach("simile_queries_total", [&](const v1::MetricValue& metric) {
    methods[LabelOf(metric, "rpc_method")].queries_per_s += readings.PerSecond(metric);
  });
  for (const auto& [method, sums] : methods) {
    const MethodStats& added = stats.methods.emplace_back(MethodStats{
        method.substr(method.find('/') + 1), sums.calls.count / readings.seconds(),
        sums.queries_per_s, sums.errors / readings.seconds(), sums.calls.percentiles()});
    stats.calls_per_s += added.calls_per_s;
    stats.queries_per_s += added.queries_per_s;
    stats.errors_per_s += added.errors_per_s;
  }
  std::ranges::stable_sort(stats.methods, std::greater<>(), &MethodStats::calls_per_s);
  stats.latency = searches.percentiles();
  stats.in_flight = readings.CountNow("simile_requests_in_flight");
  // Leaves out the GetStats call that made this reading.
  if (stats.in_flight > 0) --stats.in_flight;
  stats.connections = readings.CountNow("simile_connections");
}

void ReadLanes(const Readings& readings, IntervalStats& stats) {
  std::map<std::string, LaneStats> lanes;
  const auto add = [&](std::string_view name, auto&& use) {
    readings.ForEach(name, [&](const v1::MetricValue& metric) {
      use(lanes[LabelOf(metric, "lane")], metric.number());
    });
  };
  add("simile_queue_depth",
      [](LaneStats& lane, double value) { lane.waiting += static_cast<std::uint64_t>(value); });
  add("simile_queue_large",
      [](LaneStats& lane, double value) { lane.waiting += static_cast<std::uint64_t>(value); });
  add("simile_queue_running",
      [](LaneStats& lane, double value) { lane.running = static_cast<std::uint64_t>(value); });
  add("simile_queue_wait_estimated_seconds",
      [](LaneStats& lane, double value) { lane.wait_s = value; });
  for (auto& [name, lane] : lanes) {
    lane.name = name;
    stats.lanes.push_back(std::move(lane));
  }
}

void ReadEngine(const Readings& readings, IntervalStats& stats) {
  const Distribution batches = readings.Observed("simile_batch_size");
  stats.batches_per_s = batches.count / readings.seconds();
  if (batches.count > 0) stats.batch_mean = batches.sum / batches.count;
  const Distribution searches = readings.Observed("simile_search_duration_seconds");
  stats.batch_latency = searches.percentiles();
  stats.busy_ratio = std::clamp(searches.sum / readings.seconds(), 0.0, 1.0);
  stats.queue_depth = readings.CountNow("simile_queue_depth");
  ReadLanes(readings, stats);
  stats.queue_capacity = readings.CountNow("simile_queue_capacity");
  stats.queue_wait = readings.Observed("simile_queue_wait_seconds").percentiles();
}

void ReadMemory(const Readings& readings, const v1::BackendStatus& backend, IntervalStats& stats) {
  readings.ForEach("process_cpu_seconds_total", [&](const v1::MetricValue& metric) {
    stats.cores_used = readings.PerSecond(metric);
  });
  stats.resident_bytes = readings.CountNow("process_resident_memory_bytes");
  for (const v1::DeviceMemory& memory : backend.device_memory()) {
    stats.device_bytes += memory.bytes();
    stats.device_bytes_peak += memory.peak_bytes();
  }
}

void ReadCollections(const Readings& readings, double now_s, IntervalStats& stats) {
  std::map<std::string, CollectionStats> collections;
  const auto of = [&](const v1::MetricValue& metric) -> CollectionStats& {
    return collections[LabelOf(metric, "collection")];
  };
  readings.ForEach("simile_rows", [&](const v1::MetricValue& metric) {
    of(metric).rows = static_cast<std::uint64_t>(metric.number());
  });
  readings.ForEach("simile_snapshot_loaded_timestamp_seconds", [&](const v1::MetricValue& metric) {
    of(metric).age_s = now_s - metric.number();
  });
  readings.ForEach("simile_collection_bytes", [&](const v1::MetricValue& metric) {
    const bool on_device = LabelOf(metric, "part") == "device";
    CollectionStats& collection = of(metric);
    (on_device ? collection.device_bytes : collection.host_bytes) +=
        static_cast<std::uint64_t>(metric.number());
  });
  for (auto& [name, collection] : collections) {
    collection.name = name;
    collection.age_s = std::max(collection.age_s, 0.0);
    stats.collection_bytes += collection.host_bytes;
    stats.collections.push_back(collection);
  }
}

void ReadGpu(const Readings& readings, IntervalStats& stats) {
  GpuStats gpu;
  bool found = false;
  const auto read = [&](std::string_view name, auto& value) {
    readings.ForEach(name, [&](const v1::MetricValue& metric) {
      using Value = typename std::remove_reference_t<decltype(value)>::value_type;
      value = static_cast<Value>(metric.number());
      gpu.number = LabelOf(metric, "gpu");
      found = true;
    });
  };
  read("simile_gpu_utilization_ratio", gpu.utilization_ratio);
  read("simile_gpu_temperature_celsius", gpu.temperature_celsius);
  read("simile_gpu_power_watts", gpu.power_watts);
  read("simile_gpu_device_memory_used_bytes", gpu.memory_used_bytes);
  read("simile_gpu_device_memory_total_bytes", gpu.memory_total_bytes);
  read("simile_gpu_ecc_uncorrected_errors", gpu.ecc_uncorrected_errors);
  readings.ForEach("simile_gpu_throttled", [&](const v1::MetricValue& metric) {
    if (metric.number() > 0) gpu.throttled.push_back(LabelOf(metric, "reason"));
  });
  gpu.xids = readings.Reasons("simile_gpu_xid_errors_total", "xid");
  if (found || !gpu.xids.empty()) stats.gpu = std::move(gpu);
}

}  // namespace

std::optional<double> Quantile(const std::vector<std::pair<double, double>>& buckets,
                               double share) {
  if (buckets.empty() || buckets.back().second <= 0) return std::nullopt;
  const double rank = share * buckets.back().second;
  double lower_bound = 0;
  double lower_count = 0;
  for (const auto& [bound, count] : buckets) {
    if (count >= rank && count > lower_count) {
      if (std::isinf(bound)) break;
      return lower_bound + (bound - lower_bound) * (rank - lower_count) / (count - lower_count);
    }
    lower_bound = bound;
    lower_count = count;
  }
  return std::numeric_limits<double>::infinity();
}

IntervalStats Compare(const v1::GetStatsResponse& earlier, const v1::GetStatsResponse& later) {
  const Readings readings(earlier, later);
  IntervalStats stats;
  const double now_s =
      static_cast<double>(later.taken_at().seconds()) + later.taken_at().nanos() * 1e-9;
  stats.taken_at = std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::duration<double>(now_s)));
  stats.uptime_s = ToSeconds(later.uptime_us());
  stats.seconds = readings.seconds();
  stats.backend = later.backend();
  readings.ForEach("simile_build_info", [&](const v1::MetricValue& metric) {
    stats.version = LabelOf(metric, "version");
  });
  ReadCalls(readings, stats);
  ReadEngine(readings, stats);
  ReadMemory(readings, later.backend(), stats);
  ReadCollections(readings, now_s, stats);
  ReadGpu(readings, stats);
  stats.rejected = readings.Reasons("simile_rejected_total", "reason");
  stats.fallbacks = readings.Reasons("simile_fallback_total", "reason");
  stats.device_errors = readings.Reasons("simile_device_errors_total", "code");
  stats.reloads = readings.Reasons("simile_reload_total", "result");
  return stats;
}

}  // namespace simile::cli::top

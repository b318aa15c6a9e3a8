#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simile/v1/admin.pb.h"

namespace simile::cli::top {

// Percentiles of durations, in seconds. Infinite above the largest bucket bound of the server's
// histogram.
struct Percentiles {
  double p50_s = 0;
  double p99_s = 0;
};

// The calls of one method in the interval.
struct MethodStats {
  std::string name;  // "Search"
  double calls_per_s = 0;
  double queries_per_s = 0;
  double errors_per_s = 0;             // calls that ended with a status other than OK
  std::optional<Percentiles> latency;  // of all these calls; none without calls
};

// The queries of one lane of the queue now.
struct LaneStats {
  std::string name;  // "plain"
  std::uint64_t waiting = 0;
  std::uint64_t running = 0;
  double wait_s = 0;  // estimated time until the whole lane is answered
};

struct CollectionStats {
  std::string name;
  std::uint64_t rows = 0;
  double age_s = 0;  // of the snapshot
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;
};

// A counter, for one value of the label that says why.
struct ReasonStats {
  std::string reason;
  double per_s = 0;
  std::uint64_t total = 0;  // since the server started
};

// The card, as the driver's management library reports it. An unset value cannot be read.
struct GpuStats {
  std::string number;
  std::optional<double> utilization_ratio;
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<std::uint64_t> ecc_uncorrected_errors;
  std::vector<std::string> throttled;  // reasons for throttling that hold now
  std::vector<ReasonStats> xids;       // Xid errors that were counted
};

// A server's activity between two readings of its metrics, and its state at the second reading.
struct IntervalStats {
  std::string version;  // of the server
  std::chrono::system_clock::time_point taken_at;
  double uptime_s = 0;
  double seconds = 0;  // length of the interval
  v1::BackendStatus backend;

  double calls_per_s = 0;
  double queries_per_s = 0;
  double errors_per_s = 0;
  std::optional<Percentiles> latency;  // of all searches: Search, Recommend, SearchStream
  std::uint64_t in_flight = 0;
  std::uint64_t connections = 0;
  std::vector<MethodStats> methods;  // methods that were called since start, most calls first

  double batches_per_s = 0;
  std::optional<double> batch_mean;          // queries per batch; none without a batch
  std::optional<Percentiles> batch_latency;  // time of a batch in the engine
  double busy_ratio = 0;                     // share of the interval in which the engine searched
  std::uint64_t queue_depth = 0;             // of all lanes
  std::vector<LaneStats> lanes;              // by name
  std::uint64_t queue_capacity = 0;
  std::optional<Percentiles> queue_wait;

  double cores_used = 0;
  std::uint64_t resident_bytes = 0;    // of the process
  std::uint64_t collection_bytes = 0;  // of all collections, on the host
  std::uint64_t device_bytes = 0;
  std::uint64_t device_bytes_peak = 0;

  std::vector<CollectionStats> collections;  // by name
  std::vector<ReasonStats> rejected;         // reasons counted since start; the next three likewise
  std::vector<ReasonStats> fallbacks;
  std::vector<ReasonStats> device_errors;
  std::vector<ReasonStats> reloads;
  std::optional<GpuStats> gpu;
};

// Compares two readings. The interval begins with the server's start if `earlier` is empty or the
// server was started in between. Leaves out calls of GetStats, which `top` itself makes.
IntervalStats Compare(const v1::GetStatsResponse& earlier, const v1::GetStatsResponse& later);

// The value that `share` of the observations do not exceed. Interpolates linearly within a bucket,
// as Prometheus' histogram_quantile does; infinite in the last bucket. Nothing without
// observations.
//   buckets  pairs of a bound and the number of observations up to it, ascending; the last bound is
//            infinite
std::optional<double> Quantile(const std::vector<std::pair<double, double>>& buckets, double share);

}  // namespace simile::cli::top

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simile/v1/admin.pb.h"

namespace simile::cli::top {

// Of durations in seconds; infinite above the largest bound that the server counts under.
struct Percentiles {
  double p50_s = 0;
  double p99_s = 0;
};

// The calls of one method in the interval.
struct MethodStats {
  std::string name;  // "Search"
  double calls_per_s = 0;
  double queries_per_s = 0;
  double errors_per_s = 0;             // calls that ended with another status than OK
  std::optional<Percentiles> latency;  // of all of them; none without calls
};

// The queries of one lane of the queue now.
struct LaneStats {
  std::string name;  // "plain"
  std::uint64_t waiting = 0;
  std::uint64_t running = 0;
  double wait_s = 0;  // estimated, until all of it is answered
};

struct CollectionStats {
  std::string name;
  std::uint64_t rows = 0;
  double age_s = 0;  // of its snapshot
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;
};

// A counter with a label that says why.
struct ReasonStats {
  std::string reason;
  double per_s = 0;
  std::uint64_t total = 0;  // since the server started
};

// The card, as the driver's management library sees it. None: cannot be read.
struct GpuStats {
  std::string number;
  std::optional<double> utilization_ratio;
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<std::uint64_t> ecc_uncorrected_errors;
  std::vector<std::string> throttled;  // reasons that hold now
  std::vector<ReasonStats> xids;       // that were counted
};

// What a server did between two readings of its metrics, and its state at the second one.
struct IntervalStats {
  std::string version;  // of the server
  std::chrono::system_clock::time_point taken_at;
  double uptime_s = 0;
  double seconds = 0;  // the interval's length
  v1::BackendStatus backend;

  double calls_per_s = 0;
  double queries_per_s = 0;
  double errors_per_s = 0;
  std::optional<Percentiles> latency;  // of all searches: Search, Recommend, SearchStream
  std::uint64_t in_flight = 0;
  std::uint64_t connections = 0;
  std::vector<MethodStats> methods;  // that were ever called, most calls first

  double batches_per_s = 0;
  std::optional<double> batch_mean;          // queries; none without a batch
  std::optional<Percentiles> batch_latency;  // of a batch in the engine
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
  std::vector<ReasonStats> rejected;         // reasons that were ever counted, as the next three
  std::vector<ReasonStats> fallbacks;
  std::vector<ReasonStats> device_errors;
  std::vector<ReasonStats> reloads;
  std::optional<GpuStats> gpu;
};

// Compares two readings. Without an earlier one, or when the server was started in between, the
// interval begins with the server's start. Calls of GetStats are left out: they are those of `top`.
IntervalStats Compare(const v1::GetStatsResponse& earlier, const v1::GetStatsResponse& later);

// A distribution's value that `share` of its observations do not exceed, linear within a bucket as
// Prometheus' histogram_quantile: infinite in the last one. Nothing without observations.
//   buckets  ascending bounds, the last one infinite, and how many are at most that large
std::optional<double> Quantile(const std::vector<std::pair<double, double>>& buckets, double share);

}  // namespace simile::cli::top

#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "simile/v1/admin.pb.h"

namespace simile::cli::top {

// Writes a reading of a server's metrics. The server was started at second 1,000.
class StatsBuilder {
 public:
  using Labels = std::map<std::string, std::string>;

  explicit StatsBuilder(double taken_at_s) {
    stats_.mutable_started_at()->set_seconds(1'000);
    stats_.mutable_taken_at()->set_seconds(static_cast<std::int64_t>(taken_at_s));
    const double fraction = taken_at_s - static_cast<double>(stats_.taken_at().seconds());
    stats_.mutable_taken_at()->set_nanos(static_cast<std::int32_t>(fraction * 1e9));
    stats_.set_uptime_us(static_cast<std::uint64_t>((taken_at_s - 1'000) * 1e6));
  }

  StatsBuilder& Number(const std::string& name, const Labels& labels, double value) {
    Add(name, labels).set_number(value);
    return *this;
  }
  // A histogram with the bounds 1 ms, 10 ms and infinity.
  //   counts  of observations in each of the three, not cumulative
  StatsBuilder& Durations(const std::string& name, const Labels& labels,
                          const std::vector<std::uint64_t>& counts, double sum) {
    v1::Histogram& histogram = *Add(name, labels).mutable_histogram();
    const std::vector<double> bounds = {1e-3, 1e-2, std::numeric_limits<double>::infinity()};
    std::uint64_t cumulative_count = 0;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      cumulative_count += counts.at(i);
      v1::HistogramBucket& bucket = *histogram.add_buckets();
      bucket.set_upper_bound(bounds[i]);
      bucket.set_cumulative_count(cumulative_count);
    }
    histogram.set_count(cumulative_count);
    histogram.set_sum(sum);
    return *this;
  }
  StatsBuilder& Calls(const std::string& method, const std::string& code,
                      const std::vector<std::uint64_t>& counts) {
    return Durations("rpc_server_call_duration_seconds",
                     {{"rpc_method", method}, {"rpc_response_status_code", code}}, counts, 1);
  }

  v1::GetStatsResponse& stats() { return stats_; }

 private:
  v1::MetricValue& Add(const std::string& name, const Labels& labels) {
    v1::MetricValue& metric = *stats_.add_metrics();
    metric.set_name(name);
    for (const auto& [label, value] : labels) (*metric.mutable_labels())[label] = value;
    return metric;
  }

  v1::GetStatsResponse stats_;
};

inline const char kSearch[] = "simile.v1.SearchService/Search";
inline const char kRecommend[] = "simile.v1.SearchService/Recommend";
inline const char kGetStats[] = "simile.v1.AdminService/GetStats";

}  // namespace simile::cli::top

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace prometheus {
class Collectable;
}

namespace simile::observe {

// A distribution since the server started.
struct HistogramSample {
  struct Bucket {
    double upper_bound = 0;  // inclusive
    std::uint64_t cumulative_count = 0;
  };
  std::uint64_t count = 0;
  double sum = 0;
  std::vector<Bucket> buckets;  // ascending; the last bound is infinite
};

// One metric with one set of labels, as a scrape would show it.
struct MetricSample {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  std::variant<double, HistogramSample> value;  // a number is a counter or a gauge
};

// Reads every metric now, as FormatMetrics writes them. A call may take as long as a scrape.
// REQUIRES: only counters, gauges and histograms.
std::vector<MetricSample> ReadMetrics(
    const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables);

// Formats every metric now, as a scrape reads them: Prometheus' text format 0.0.4.
std::string FormatMetrics(
    const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables);

}  // namespace simile::observe

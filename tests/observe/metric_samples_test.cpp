#include "observe/metric_samples.h"

#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/metric_lines.h"
#include "observe/metrics.h"
#include "observe/scrape_sources.h"

namespace simile::observe {
namespace {

using ::testing::DoubleNear;
using ::testing::Pair;

MetricLines ToMetricLines(const std::vector<MetricSample>& samples) {
  MetricLines lines;
  for (const MetricSample& sample : samples) {
    const SortedLabels labels(sample.labels.begin(), sample.labels.end());
    if (const double* number = std::get_if<double>(&sample.value)) {
      lines[LineName(sample.name, labels)] = *number;
      continue;
    }
    const auto& histogram = std::get<HistogramSample>(sample.value);
    AddHistogramLines(sample.name, labels, histogram.count, histogram.sum, histogram.buckets,
                      lines);
  }
  return lines;
}

TEST(ReadMetricsTest, SaysWhatAScrapeSays) {
  Metrics metrics(
      {.version = "0.1.0", .build = "g1", .commit = {}, .compiler = {}, .build_type = {}});
  metrics.FindOrAddCalls("simile.v1.SearchService/Search")
      .Record(absl::StatusCode::kOk, std::chrono::microseconds(300));
  metrics.FindOrAddCalls("simile.v1.SearchService/Search")
      .Record(absl::StatusCode::kOk, std::chrono::seconds(40));
  metrics.RecordBatch("cpu", 3, 1'500, std::vector<std::uint64_t>{10, 2'000});
  metrics.SetBackendActive("cpu");
  metrics.CountRejected(Rejection::kQueueFull);
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables = metrics.Collectables();
  collectables.resize(1);  // not the process's own, which differ from one moment to the next
  collectables.push_back(MakeScrapeCollector({
      .connections_open = [] { return std::uint64_t{7}; },
      .collections = {},
      .device_memory =
          [] {
            return std::vector<DeviceMemory>{{"rows-fp16", 100, 200}};
          },
      .others = {},
  }));
  const MetricLines scraped = observe::ParseMetricLines(FormatMetrics(collectables));
  const MetricLines read = ToMetricLines(ReadMetrics(collectables));
  EXPECT_GT(scraped.size(), 60U);
  EXPECT_EQ(read.size(), scraped.size());
  for (const auto& [name, number] : scraped) {
    ASSERT_TRUE(read.contains(name)) << name;
    EXPECT_THAT(*read.find(name), Pair(name, DoubleNear(number, std::abs(number) * 1e-9)));
  }
}

TEST(ReadMetricsTest, EndsTheBucketsOfAHistogramWithAnInfiniteBound) {
  Metrics metrics({});
  metrics.FindOrAddCalls("Search").Record(absl::StatusCode::kOk, std::chrono::seconds(40));
  for (const MetricSample& sample : ReadMetrics(metrics.Collectables())) {
    if (sample.name != "rpc_server_call_duration_seconds") continue;
    const auto& histogram = std::get<HistogramSample>(sample.value);
    EXPECT_EQ(histogram.count, 1U);
    EXPECT_EQ(histogram.sum, 40);
    EXPECT_EQ(histogram.buckets.size(), 19U);
    EXPECT_EQ(histogram.buckets[17].cumulative_count, 0U);
    EXPECT_TRUE(std::isinf(histogram.buckets[18].upper_bound));
    EXPECT_EQ(histogram.buckets[18].cumulative_count, 1U);
    return;
  }
  FAIL() << "no histogram";
}

}  // namespace
}  // namespace simile::observe

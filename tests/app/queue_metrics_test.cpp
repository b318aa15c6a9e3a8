#include "app/queue_metrics.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace simile::app {
namespace {

TEST(QueueMetricsTest, NamesEveryLane) {
  engine::ExecutorCounts counts;
  counts.lanes[0] = {.waiting = 30, .running = 2, .oversize_waiting = 20, .wait_ms_estimated = 40};
  counts.lanes[2].waiting = 7;
  counts.queue_bytes = 4'096;
  std::map<std::string, double> values;
  for (const observe::ScrapedMetric& metric : QueueMetrics(counts)) {
    const std::string lane = metric.labels.empty() ? "" : metric.labels[0].second;
    EXPECT_TRUE(values.emplace(std::string(metric.name) + " " + lane, metric.value).second);
  }
  EXPECT_EQ(values.at("simile_queue_depth plain"), 10) << "the large call waits beside the queue";
  EXPECT_EQ(values.at("simile_queue_oversize plain"), 20);
  EXPECT_EQ(values.at("simile_queue_running plain"), 2);
  EXPECT_EQ(values.at("simile_queue_wait_estimated_seconds plain"), 0.04);
  EXPECT_EQ(values.at("simile_queue_depth hard"), 0);
  EXPECT_EQ(values.at("simile_queue_depth bulk"), 7);
  EXPECT_EQ(values.at("simile_queue_bytes "), 4'096);
}

}  // namespace
}  // namespace simile::app

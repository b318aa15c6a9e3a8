#include "app/server_metrics.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace simile::app {
namespace {

TEST(QueueMetricsTest, NamesEveryLaneAndBudget) {
  engine::ExecutorCounts counts;
  counts.lanes[0] = {.waiting = 30, .running = 2, .large_waiting = 20, .wait_ms_estimated = 40};
  counts.lanes[2].waiting = 7;
  counts.queue_bytes = 4'096;
  counts.paused_bytes = 2'048;
  service::RpcServices::Counts services;
  services.unsent_bytes = 5'000;
  services.resolve = {.waiting = 3, .waiting_bytes = 300, .begun = 4, .begun_bytes = 400};
  Limits limits;
  limits.queue_bytes_max = 11;
  limits.resolve_bytes_max = 12;
  limits.unsent_bytes_max = 13;
  std::map<std::string, double> values;
  for (const observe::ScrapedMetric& metric : QueueMetrics(counts, services, limits)) {
    const std::string label = metric.labels.empty() ? "" : " " + metric.labels[0].second;
    EXPECT_TRUE(values.emplace(metric.name + label, metric.value).second);
  }
  EXPECT_EQ(values.at("simile_queue_depth plain"), 10) << "the large call waits beside the queue";
  EXPECT_EQ(values.at("simile_queue_large plain"), 20);
  EXPECT_EQ(values.at("simile_queue_running plain"), 2);
  EXPECT_EQ(values.at("simile_queue_wait_estimated_seconds plain"), 0.04);
  EXPECT_EQ(values.at("simile_queue_depth hard"), 0);
  EXPECT_EQ(values.at("simile_queue_depth bulk"), 7);
  EXPECT_EQ(values.at("simile_queue_paused_bytes"), 2'048);
  EXPECT_EQ(values.at("simile_resolve_waiting"), 3);
  EXPECT_EQ(values.at("simile_resolve_begun"), 4);
  EXPECT_EQ(values.at("simile_budget_bytes queue"), 4'096);
  EXPECT_EQ(values.at("simile_budget_bytes resolve_waiting"), 300);
  EXPECT_EQ(values.at("simile_budget_bytes resolve_begun"), 400);
  EXPECT_EQ(values.at("simile_budget_bytes unsent_replies"), 5'000);
  EXPECT_EQ(values.at("simile_budget_bytes_max queue"), 11);
  EXPECT_EQ(values.at("simile_budget_bytes_max resolve_waiting"), 12);
  EXPECT_EQ(values.at("simile_budget_bytes_max resolve_begun"), 12);
  EXPECT_EQ(values.at("simile_budget_bytes_max unsent_replies"), 13);
}

}  // namespace
}  // namespace simile::app

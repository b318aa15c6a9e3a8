#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/films_server.h"
#include "observe/metric_lines.h"

namespace simile::integration {
namespace {

using observe::MetricLines;
using observe::SortedLabels;

MetricLines ToMetricLines(const v1::GetStatsResponse& stats) {
  MetricLines lines;
  for (const v1::MetricValue& metric : stats.metrics()) {
    const SortedLabels labels(metric.labels().begin(), metric.labels().end());
    if (metric.has_number()) {
      lines[observe::LineName(metric.name(), labels)] = metric.number();
      continue;
    }
    std::vector<std::pair<double, std::uint64_t>> buckets;
    for (const v1::HistogramBucket& bucket : metric.histogram().buckets()) {
      buckets.emplace_back(bucket.upper_bound(), bucket.cumulative_count());
    }
    observe::AddHistogramLines(metric.name(), labels, metric.histogram().count(),
                               metric.histogram().sum(), buckets, lines);
  }
  return lines;
}

// Whether a metric may differ between two readings of a server without load: the process's own use,
// connections, and the reading call, whose reply gRPC holds a moment longer.
bool MayDiffer(const std::string& line) {
  return line.starts_with("process_") || line.starts_with("simile_connections") ||
         line.starts_with("simile_requests_in_flight") ||
         line.starts_with("simile_budget_bytes{budget=\"unsent_replies\"") ||
         line.starts_with("simile_resolve_begun") ||
         line.find("AdminService/GetStats") != std::string::npos;
}

TEST(StatsTest, AreRefusedWithoutTheSwitch) {
  const auto app = StartWithoutLoading();
  v1::GetStatsResponse stats;
  const Outcome outcome = Client(app->address()).GetStats(stats);
  EXPECT_EQ(outcome.code, absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(outcome.reason, "ADMIN_NOT_ALLOWED");
  EXPECT_EQ(
      outcome.message,
      "this server does not show its metrics and probes over the wire; start it with --allow-admin "
      "(server.admin_allowed)");
  v1::DiagnoseResponse findings;
  EXPECT_EQ(Client(app->address()).Diagnose(findings).reason, "ADMIN_NOT_ALLOWED");
}

TEST(StatsTest, AreThoseOfAScrape) {
  FilmsServer server([](app::Config& config) { config.admin_allowed = true; });
  const Client client = server.NewClient();
  v1::SearchResponse answer;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.Search(ToyStory(), answer).ok());
  v1::SearchRequest wrong = ToyStory();
  wrong.set_collection("none");
  EXPECT_FALSE(client.Search(wrong, answer).ok());
  v1::GetStatsResponse stats;
  ASSERT_TRUE(client.GetStats(stats).ok());  // from now on GetStats itself is counted
  const std::uint64_t earlier_uptime_us = stats.uptime_us();
  stats.Clear();
  ASSERT_TRUE(client.GetStats(stats).ok());
  const MetricLines read = ToMetricLines(stats);
  const MetricLines scraped =
      observe::ParseMetricLines(ScrapeMetrics(*server.app().metrics_port()));
  EXPECT_GT(scraped.size(), 100U);
  EXPECT_EQ(read.size(), scraped.size());
  for (const auto& [line, number] : scraped) {
    const auto same = read.find(line);
    ASSERT_NE(same, read.end()) << line;
    if (MayDiffer(line)) continue;
    EXPECT_NEAR(same->second, number, std::abs(number) * 1e-9) << line;
  }
  EXPECT_EQ(read.at("simile_queries_total{rpc_method=\"simile.v1.SearchService/Search\"}"), 3);
  EXPECT_EQ(read.at("simile_rows{collection=\"films\"}"), kFilmsRows);
  EXPECT_GT(read.at("simile_collection_bytes{collection=\"films\",part=\"vectors\"}"), 7e6);
  EXPECT_EQ(stats.backend().kind(), v1::BACKEND_KIND_CPU);
  EXPECT_GE(stats.taken_at().seconds(), stats.started_at().seconds());
  EXPECT_GT(stats.uptime_us(), earlier_uptime_us);
}

TEST(StatsTest, NeedNoPortOfMetrics) {
  const auto app = StartWithoutLoading([](app::Config& config) {
    config.admin_allowed = true;
    config.metrics_enabled = false;
  });
  v1::GetStatsResponse stats;
  ASSERT_TRUE(Client(app->address()).GetStats(stats).ok());
  EXPECT_TRUE(ToMetricLines(stats).contains("simile_queue_depth{lane=\"plain\"}"));
}

}  // namespace
}  // namespace simile::integration

#include "cli/top/interval_stats.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/top/stats_builder.h"

namespace simile::cli::top {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(QuantileTest, IsLinearWithinABucket) {
  const std::vector<std::pair<double, double>> buckets = {
      {1, 10}, {2, 30}, {4, 40}, {kInfinity, 40}};
  EXPECT_THAT(Quantile(buckets, 0.25), Optional(DoubleEq(1)));
  EXPECT_THAT(Quantile(buckets, 0.5), Optional(DoubleEq(1.5)));
  EXPECT_THAT(Quantile(buckets, 0.75), Optional(DoubleEq(2)));
  EXPECT_THAT(Quantile(buckets, 1), Optional(DoubleEq(4)));
  EXPECT_THAT(Quantile(buckets, 0.125), Optional(DoubleEq(0.5)));
}

TEST(QuantileTest, SkipsEmptyBuckets) {
  EXPECT_THAT(Quantile({{1, 0}, {2, 0}, {4, 10}, {kInfinity, 10}}, 0.5), Optional(DoubleEq(3)));
  EXPECT_THAT(Quantile({{1, 5}, {2, 5}, {4, 5}, {kInfinity, 5}}, 0.99), Optional(DoubleEq(0.99)));
}

TEST(QuantileTest, IsInfiniteAboveTheLargestBound) {
  EXPECT_THAT(Quantile({{1, 5}, {kInfinity, 10}}, 0.99), Optional(kInfinity));
  EXPECT_THAT(Quantile({{1, 5}, {kInfinity, 10}}, 0.5), Optional(DoubleEq(1)));
}

TEST(QuantileTest, IsNothingWithoutObservations) {
  EXPECT_EQ(Quantile({}, 0.5), std::nullopt);
  EXPECT_EQ(Quantile({{1, 0}, {kInfinity, 0}}, 0.5), std::nullopt);
}

TEST(CompareTest, CountsTheCallsOfTheInterval) {
  StatsBuilder earlier(2'000);
  earlier.Calls(kSearch, "OK", {100, 0, 0})
      .Number("simile_queries_total", {{"rpc_method", kSearch}}, 500);
  StatsBuilder later(2'002);
  later.Calls(kSearch, "OK", {100, 80, 0})
      .Calls(kSearch, "NOT_FOUND", {20, 0, 0})
      .Calls(kRecommend, "OK", {4, 0, 0})
      .Number("simile_queries_total", {{"rpc_method", kSearch}}, 900);
  const IntervalStats stats = Compare(earlier.stats(), later.stats());
  EXPECT_DOUBLE_EQ(stats.seconds, 2);
  EXPECT_DOUBLE_EQ(stats.uptime_s, 1'002);
  EXPECT_DOUBLE_EQ(stats.calls_per_s, 52);
  EXPECT_DOUBLE_EQ(stats.queries_per_s, 200);
  EXPECT_DOUBLE_EQ(stats.errors_per_s, 10);
  ASSERT_EQ(stats.methods.size(), 2U);
  EXPECT_EQ(stats.methods[0].name, "Search");
  EXPECT_DOUBLE_EQ(stats.methods[0].calls_per_s, 50);
  EXPECT_DOUBLE_EQ(stats.methods[0].errors_per_s, 10);
  // Of 20 up to 1 ms and 80 from there to 10 ms.
  ASSERT_TRUE(stats.methods[0].latency.has_value());
  EXPECT_NEAR(stats.methods[0].latency->p50_s, 1e-3 + 9e-3 * 30 / 80, 1e-12);
  EXPECT_EQ(stats.methods[1].name, "Recommend");
  EXPECT_DOUBLE_EQ(stats.methods[1].calls_per_s, 2);
  EXPECT_DOUBLE_EQ(stats.methods[1].queries_per_s, 0);
}

TEST(CompareTest, LeavesOutTheReadingsThemselves) {
  StatsBuilder later(1'010);
  later.Calls(kGetStats, "OK", {10, 0, 0}).Number("simile_requests_in_flight", {}, 1);
  const IntervalStats stats = Compare({}, later.stats());
  EXPECT_EQ(stats.calls_per_s, 0);
  EXPECT_THAT(stats.methods, IsEmpty());
  EXPECT_EQ(stats.in_flight, 0U);
}

TEST(CompareTest, KeepsAMethodThatRestsWithoutALatency) {
  StatsBuilder earlier(2'000);
  earlier.Calls(kSearch, "OK", {7, 0, 0});
  StatsBuilder later(2'001);
  later.Calls(kSearch, "OK", {7, 0, 0});
  const IntervalStats stats = Compare(earlier.stats(), later.stats());
  ASSERT_EQ(stats.methods.size(), 1U);
  EXPECT_EQ(stats.methods[0].calls_per_s, 0);
  EXPECT_FALSE(stats.methods[0].latency.has_value());
  EXPECT_FALSE(stats.latency.has_value());
}

TEST(CompareTest, BeginsWithTheServersStart) {
  StatsBuilder later(1'010);
  later.Calls(kSearch, "OK", {20, 0, 0});
  const IntervalStats alone = Compare({}, later.stats());
  EXPECT_DOUBLE_EQ(alone.seconds, 10);
  EXPECT_DOUBLE_EQ(alone.calls_per_s, 2);
  // A reading of the server before it was restarted says nothing about this one.
  StatsBuilder former(1'005);
  former.Calls(kSearch, "OK", {1'000, 0, 0});
  former.stats().mutable_started_at()->set_seconds(500);
  const IntervalStats restarted = Compare(former.stats(), later.stats());
  EXPECT_DOUBLE_EQ(restarted.seconds, 10);
  EXPECT_DOUBLE_EQ(restarted.calls_per_s, 2);
}

TEST(CompareTest, KeepsItsRatesWhenTheServersClockStepsBack) {
  StatsBuilder earlier(2'000);
  earlier.Calls(kSearch, "OK", {100, 0, 0});
  StatsBuilder later(2'002);
  later.Calls(kSearch, "OK", {120, 0, 0});
  later.stats().mutable_taken_at()->set_seconds(900);
  const IntervalStats stats = Compare(earlier.stats(), later.stats());
  EXPECT_DOUBLE_EQ(stats.seconds, 2);
  EXPECT_DOUBLE_EQ(stats.uptime_s, 1'002);
  EXPECT_DOUBLE_EQ(stats.calls_per_s, 10);
}

TEST(CompareTest, ReadsTheEngineAndItsQueue) {
  StatsBuilder earlier(2'000);
  earlier.Durations("simile_batch_size", {}, {10, 0, 0}, 20)
      .Durations("simile_search_duration_seconds", {{"backend", "cpu"}}, {10, 0, 0}, 0.25);
  StatsBuilder later(2'002);
  later.Durations("simile_batch_size", {}, {20, 0, 0}, 80)
      .Durations("simile_search_duration_seconds", {{"backend", "cpu"}}, {12, 8, 0}, 1.25)
      .Durations("simile_search_duration_seconds", {{"backend", "gpu"}}, {1, 0, 0}, 0.5)
      .Durations("simile_queue_wait_seconds", {}, {10, 0, 0}, 0.001)
      .Number("simile_queue_depth", {{"lane", "plain"}}, 9)
      .Number("simile_queue_depth", {{"lane", "bulk"}}, 3)
      .Number("simile_queue_large", {{"lane", "bulk"}}, 500)
      .Number("simile_queue_running", {{"lane", "plain"}}, 4)
      .Number("simile_queue_wait_estimated_seconds", {{"lane", "bulk"}}, 1.5)
      .Number("simile_queue_capacity", {}, 1'024)
      .Number("process_cpu_seconds_total", {}, 3);
  const IntervalStats stats = Compare(earlier.stats(), later.stats());
  EXPECT_DOUBLE_EQ(stats.batches_per_s, 5);
  EXPECT_THAT(stats.batch_mean, Optional(DoubleEq(6)));
  EXPECT_DOUBLE_EQ(stats.busy_ratio, 0.75);
  EXPECT_EQ(stats.queue_depth, 12U);
  EXPECT_EQ(stats.queue_capacity, 1'024U);
  ASSERT_EQ(stats.lanes.size(), 2U);
  EXPECT_EQ(stats.lanes[0].name, "bulk");
  EXPECT_EQ(stats.lanes[0].waiting, 503U) << "the large call beside the queue waits too";
  EXPECT_EQ(stats.lanes[0].wait_s, 1.5);
  EXPECT_EQ(stats.lanes[1].name, "plain");
  EXPECT_EQ(stats.lanes[1].running, 4U);
  ASSERT_TRUE(stats.queue_wait.has_value());
  EXPECT_DOUBLE_EQ(stats.queue_wait->p50_s, 0.5e-3);
  EXPECT_DOUBLE_EQ(stats.cores_used, 1.5);
}

TEST(CompareTest, SumsTheMemoryOfEachCollection) {
  StatsBuilder later(2'000);
  for (const char* name : {"films", "books"}) {
    later.Number("simile_rows", {{"collection", name}}, 5'000)
        .Number("simile_snapshot_loaded_timestamp_seconds", {{"collection", name}}, 1'940.5)
        .Number("simile_collection_bytes", {{"collection", name}, {"part", "vectors"}}, 700)
        .Number("simile_collection_bytes", {{"collection", name}, {"part", "index"}}, 200)
        .Number("simile_collection_bytes", {{"collection", name}, {"part", "device"}}, 50);
  }
  v1::DeviceMemory& memory = *later.stats().mutable_backend()->add_device_memory();
  memory.set_bytes(100);
  memory.set_peak_bytes(150);
  const IntervalStats stats = Compare({}, later.stats());
  ASSERT_EQ(stats.collections.size(), 2U);
  EXPECT_EQ(stats.collections[0].name, "books");
  EXPECT_EQ(stats.collections[1].rows, 5'000U);
  EXPECT_DOUBLE_EQ(stats.collections[1].age_s, 59.5);
  EXPECT_EQ(stats.collections[1].host_bytes, 900U);
  EXPECT_EQ(stats.collections[1].device_bytes, 50U);
  EXPECT_EQ(stats.collection_bytes, 1'800U);
  EXPECT_EQ(stats.device_bytes, 100U);
  EXPECT_EQ(stats.device_bytes_peak, 150U);
}

TEST(CompareTest, NamesTheReasonsThatWereEverCounted) {
  StatsBuilder earlier(2'000);
  earlier.Number("simile_rejected_total", {{"reason", "queue_full"}}, 4)
      .Number("simile_rejected_total", {{"reason", "deadline"}}, 2);
  StatsBuilder later(2'002);
  later.Number("simile_rejected_total", {{"reason", "queue_full"}}, 10)
      .Number("simile_rejected_total", {{"reason", "deadline"}}, 2)
      .Number("simile_rejected_total", {{"reason", "draining"}}, 0)
      .Number("simile_fallback_total", {{"reason", "device_lost"}}, 1)
      .Number("simile_device_errors_total", {{"code", "700"}}, 1)
      .Number("simile_reload_total", {{"result", "failed"}}, 3);
  const IntervalStats stats = Compare(earlier.stats(), later.stats());
  ASSERT_EQ(stats.rejected.size(), 2U);
  EXPECT_EQ(stats.rejected[0].reason, "queue_full");
  EXPECT_DOUBLE_EQ(stats.rejected[0].per_s, 3);
  EXPECT_EQ(stats.rejected[0].total, 10U);
  EXPECT_EQ(stats.rejected[1].per_s, 0);
  ASSERT_EQ(stats.fallbacks.size(), 1U);
  EXPECT_EQ(stats.fallbacks[0].reason, "device_lost");
  ASSERT_EQ(stats.device_errors.size(), 1U);
  EXPECT_EQ(stats.device_errors[0].reason, "700");
  ASSERT_EQ(stats.reloads.size(), 1U);
  EXPECT_EQ(stats.reloads[0].total, 3U);
}

TEST(CompareTest, ReadsWhatTheCardSays) {
  StatsBuilder later(2'000);
  EXPECT_FALSE(Compare({}, later.stats()).gpu.has_value());
  later.Number("simile_gpu_temperature_celsius", {{"gpu", "1"}}, 71)
      .Number("simile_gpu_throttled", {{"gpu", "1"}, {"reason", "hw_thermal_slowdown"}}, 1)
      .Number("simile_gpu_throttled", {{"gpu", "1"}, {"reason", "sw_power_cap"}}, 0)
      .Number("simile_gpu_xid_errors_total", {{"gpu", "1"}, {"xid", "79"}}, 2)
      .Number("simile_gpu_xid_errors_total", {{"gpu", "1"}, {"xid", "13"}}, 0);
  const IntervalStats stats = Compare({}, later.stats());
  ASSERT_TRUE(stats.gpu.has_value());
  EXPECT_EQ(stats.gpu->number, "1");
  EXPECT_THAT(stats.gpu->temperature_celsius, Optional(71.0));
  EXPECT_FALSE(stats.gpu->power_watts.has_value());
  EXPECT_THAT(stats.gpu->throttled, ElementsAre("hw_thermal_slowdown"));
  ASSERT_EQ(stats.gpu->xids.size(), 1U);
  EXPECT_EQ(stats.gpu->xids[0].reason, "79");
}

}  // namespace
}  // namespace simile::cli::top

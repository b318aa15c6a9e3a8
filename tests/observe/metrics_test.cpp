#include "observe/metrics.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/exposed.h"
#include "observe/scrape_sources.h"

namespace simile::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, ExposesEveryRejectionFromTheStart) {
  const Metrics metrics(
      {.version = "0.1.0", .build = "g1234", .commit = {}, .compiler = {}, .build_type = {}});
  const std::string text = Exposed(metrics);
  for (const char* reason :
       {"queue_full", "deadline", "cancelled", "draining", "connections", "connections_per_peer",
        "descriptors", "reply_not_taken", "frame_guard", "unfinished_bodies"}) {
    EXPECT_THAT(text,
                HasSubstr("simile_rejected_total{reason=\"" + std::string(reason) + "\"} 0\n"));
  }
  EXPECT_THAT(text, HasSubstr("simile_build_info{build=\"g1234\",version=\"0.1.0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("process_resident_memory_bytes"));
}

TEST(MetricsTest, ExposesEveryFallbackFromTheStart) {
  Metrics metrics(
      {.version = "0.1.0", .build = "g1234", .commit = {}, .compiler = {}, .build_type = {}});
  for (const char* reason :
       {"out_of_memory", "call_failed", "late", "device_lost", "does_not_fit"}) {
    EXPECT_THAT(Exposed(metrics),
                HasSubstr("simile_fallback_total{reason=\"" + std::string(reason) + "\"} 0\n"));
  }
  metrics.CountFallback(FallbackCause::kDoesNotFit);
  metrics.CountDeviceError(700);
  EXPECT_THAT(Exposed(metrics), HasSubstr("simile_fallback_total{reason=\"does_not_fit\"} 1\n"));
  EXPECT_THAT(Exposed(metrics), HasSubstr("simile_device_errors_total{code=\"700\"} 1\n"));
}

TEST(MetricsTest, ReportsOneActiveBackend) {
  Metrics metrics(
      {.version = "0.1.0", .build = "g1234", .commit = {}, .compiler = {}, .build_type = {}});
  metrics.SetGpuRequested(true);
  metrics.SetBackendActive("gpu");
  EXPECT_THAT(Exposed(metrics), HasSubstr("simile_gpu_requested 1\n"));
  EXPECT_THAT(Exposed(metrics), HasSubstr("simile_backend_active{backend=\"gpu\"} 1\n"));
  metrics.SetBackendActive("cpu");
  EXPECT_THAT(Exposed(metrics), HasSubstr("simile_backend_active{backend=\"gpu\"} 0\n"));
  EXPECT_THAT(Exposed(metrics), HasSubstr("simile_backend_active{backend=\"cpu\"} 1\n"));
}

TEST(MetricsTest, RecordsCallsByMethodAndStatus) {
  Metrics metrics({});
  metrics.FindOrAddCalls("simile.v1.SearchService/Search")
      .Record(absl::StatusCode::kOk, std::chrono::microseconds(300));
  metrics.FindOrAddCalls("simile.v1.SearchService/Search")
      .Record(absl::StatusCode::kOk, std::chrono::milliseconds(3));
  metrics.FindOrAddCalls("simile.v1.SearchService/Search")
      .Record(absl::StatusCode::kNotFound, std::chrono::microseconds(1));
  const std::string text = Exposed(metrics);
  const std::string ok =
      "{rpc_method=\"simile.v1.SearchService/Search\",rpc_response_status_code=\"OK\"";
  EXPECT_THAT(text, HasSubstr("rpc_server_call_duration_seconds_count" + ok + "} 2\n"));
  EXPECT_THAT(text,
              HasSubstr("rpc_server_call_duration_seconds_bucket" + ok + ",le=\"0.0005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rpc_response_status_code=\"NOT_FOUND\"} 1\n"));
}

TEST(MetricsTest, RecordsABatchOnceAndTheWaitOfEachCall) {
  Metrics metrics({});
  metrics.RecordBatch("cpu", 3, 1'500, std::vector<std::uint64_t>{10, 2'000});
  const std::string text = Exposed(metrics);
  EXPECT_THAT(text, HasSubstr("simile_batch_size_sum 3\n"));
  EXPECT_THAT(text, HasSubstr("simile_batch_size_count 1\n"));
  EXPECT_THAT(text, HasSubstr("simile_search_duration_seconds_sum{backend=\"cpu\"} 0.0015\n"));
  EXPECT_THAT(text, HasSubstr("simile_queue_wait_seconds_count 2\n"));
}

TEST(MetricsTest, CountsReloadsRejectionsAndCallsInFlight) {
  Metrics metrics({});
  metrics.CountReload(true);
  metrics.CountReload(false);
  metrics.CountReload(false);
  metrics.CountRejected(Rejection::kQueueFull);
  metrics.AddRequestsInFlight(2);
  metrics.AddRequestsInFlight(-1);
  metrics.SetBackendActive("cpu");
  metrics.RecordAnswer("simile.v1.SearchService/Search", 3,
                       {.rows_scanned = 100, .rows_rescored = 14, .rescans = 2});
  metrics.SetQueueCapacity(1'024);
  const std::string text = Exposed(metrics);
  EXPECT_THAT(text, HasSubstr("simile_reload_total{result=\"published\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("simile_reload_total{result=\"failed\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("simile_rejected_total{reason=\"queue_full\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("simile_requests_in_flight 1\n"));
  EXPECT_THAT(text, HasSubstr("simile_backend_active{backend=\"cpu\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("simile_rescored_rows_sum 14\n"));
  EXPECT_THAT(text, HasSubstr("simile_rescans_total 2\n"));
  EXPECT_THAT(text,
              HasSubstr("simile_queries_total{rpc_method=\"simile.v1.SearchService/Search\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("simile_queue_capacity 1024\n"));
}

TEST(ScrapeCollectorTest, ReadsItsSourcesAtEveryScrape) {
  std::uint64_t connections = 7;
  const auto collector = MakeScrapeCollector({
      .connections_open = [&] { return connections; },
      .collections =
          [] {
            return std::vector<CollectionReading>{
                {"films",
                 5000,
                 std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000)),
                 {{"vectors", 7'680'000}, {"device", 0}},
                 true,
                 false,
                 {{"price", 3}}},
                {.name = "books",
                 .loaded_at = {},
                 .bytes = {},
                 .last_load_failed = true,
                 .unfit_values = {}},
                {.name = "maps",
                 .loaded_at = {},
                 .bytes = {},
                 .serves = false,
                 .last_load_failed = true,
                 .unfit_values = {}}};
          },
      .device_memory = {},
      .others = {},
  });
  std::string text = FormatMetrics({collector});
  EXPECT_THAT(text, HasSubstr("simile_connections{state=\"open\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("simile_rows{collection=\"films\"} 5000\n"));
  EXPECT_THAT(text, HasSubstr("simile_unfit_values{collection=\"films\",field=\"price\"} 3\n"));
  EXPECT_THAT(
      text,
      HasSubstr("simile_snapshot_loaded_timestamp_seconds{collection=\"films\"} 1700000000\n"));
  EXPECT_THAT(text, HasSubstr("simile_last_load_successful{collection=\"films\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("simile_last_load_successful{collection=\"books\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("simile_rows{collection=\"books\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("simile_last_load_successful{collection=\"maps\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("simile_rows{collection=\"maps\"}"))) << "it serves nothing";
  EXPECT_THAT(
      text, HasSubstr("simile_collection_bytes{collection=\"films\",part=\"vectors\"} 7680000\n"));
  EXPECT_THAT(text, HasSubstr("simile_collection_bytes{collection=\"films\",part=\"device\"} 0\n"));
  connections = 0;
  EXPECT_THAT(FormatMetrics({collector}), HasSubstr("simile_connections{state=\"open\"} 0\n"));
}

TEST(ScrapeCollectorTest, ReportsTheMemoryOfAGpuByKind) {
  ScrapeSources sources;
  sources.device_memory = [] { return std::vector<DeviceMemory>{{"rows-fp16", 100, 200}}; };
  const std::string text = FormatMetrics({MakeScrapeCollector(std::move(sources))});
  EXPECT_THAT(text, HasSubstr("simile_gpu_memory_bytes{kind=\"rows-fp16\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("simile_gpu_memory_peak_bytes{kind=\"rows-fp16\"} 200\n"));
  sources.device_memory = [] { return std::vector<DeviceMemory>(); };
  EXPECT_THAT(FormatMetrics({MakeScrapeCollector(std::move(sources))}),
              Not(HasSubstr("simile_gpu")));
}

TEST(ScrapeCollectorTest, MakesOneFamilyOfMetricsThatShareAName) {
  ScrapeSources sources;
  sources.others = [] {
    return std::vector<ScrapedMetric>{
        {"simile_hot", "Heat.", false, {{"gpu", "0"}}, 71.5},
        {"simile_faults_total", "Faults.", true, {{"gpu", "0"}, {"xid", "31"}}, 2},
        {"simile_faults_total", "Faults.", true, {{"gpu", "0"}, {"xid", "79"}}, 0}};
  };
  EXPECT_EQ(FormatMetrics({MakeScrapeCollector(std::move(sources))}),
            "# HELP simile_hot Heat.\n"
            "# TYPE simile_hot gauge\n"
            "simile_hot{gpu=\"0\"} 71.5\n"
            "# HELP simile_faults_total Faults.\n"
            "# TYPE simile_faults_total counter\n"
            "simile_faults_total{gpu=\"0\",xid=\"31\"} 2\n"
            "simile_faults_total{gpu=\"0\",xid=\"79\"} 0\n");
}

TEST(ScrapeCollectorTest, OmitsMetricsWithoutASource) {
  const std::string text = FormatMetrics({MakeScrapeCollector({})});
  EXPECT_THAT(text, Not(HasSubstr("simile_")));
}

}  // namespace
}  // namespace simile::observe

#include "cli/top/top_text.h"

#include <limits>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/output_text.h"

namespace simile::cli::top {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A server under load, on the CPU.
IntervalStats Busy() {
  IntervalStats stats;
  stats.version = "0.1.0";
  stats.taken_at = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  stats.uptime_s = 7'500;
  stats.seconds = 1;
  stats.backend.set_kind(v1::BACKEND_KIND_CPU);
  stats.backend.set_engine("int8-amx");
  stats.backend.set_device("AMD EPYC 9B14, 2 threads");
  stats.backend.set_reason("no NVIDIA driver on this machine (libcuda.so.1 not found)");
  stats.calls_per_s = 41'205.4;
  stats.queries_per_s = 41'210;
  stats.errors_per_s = 0.5;
  stats.latency = {0.9e-3, 2.1e-3};
  stats.in_flight = 64;
  stats.connections = 65;
  stats.methods = {{"Search", 41'205.4, 41'210, 0.5, Percentiles{0.9e-3, 2.1e-3}},
                   {"ListCollections", 0, 0, 0, std::nullopt}};
  stats.batches_per_s = 1'078;
  stats.batch_mean = 38.2;
  stats.batch_latency = {0.86e-3, 1.9e-3};
  stats.busy_ratio = 0.934;
  stats.queue_depth = 12;
  stats.queue_capacity = 1'024;
  stats.lanes = {{"bulk", 0, 0, 0}, {"hard", 0, 2, 0.25}, {"plain", 12, 30, 0.004}};
  stats.queue_wait = {41e-6, 1.2e-3};
  stats.cores_used = 1.984;
  stats.resident_bytes = 210 << 20;
  stats.collection_bytes = 12 << 20;
  stats.collections = {{"films", 5'000, 75, 12 << 20, 0}};
  return stats;
}

Terminal Wide(std::size_t columns) { return {true, false, columns}; }

std::size_t WidestLine(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, DisplayWidth(line));
  return widest;
}

TEST(TopTextTest, FillsAnOrdinaryTerminal) {
  EXPECT_EQ(TopText(Busy(), "127.0.0.1:50051", Wide(80)),
            "simile 0.1.0 at 127.0.0.1:50051 · up 2 h 5 min · 22:13:20 UTC · over 1.0 s\n"
            "backend    cpu: no NVIDIA driver on this machine (libcuda.so.1 not found)\n"
            "           int8-amx on AMD EPYC 9B14, 2 threads\n"
            "traffic    41,210/s queries · 41,205/s calls · 0.5/s errors · 64 in flight\n"
            "latency    900 us p50, 2.1 ms p99 of searches\n"
            "engine     93 % busy · 1,078/s batches · 38.2 queries each\n"
            "           860 us p50, 1.9 ms p99\n"
            "queue      12 of 1,024 waiting · 41 us p50, 1.2 ms p99 wait\n"
            "lanes      hard 0 waiting, 2 running, 250 ms left\n"
            "           plain 12 waiting, 30 running, 4.0 ms left\n"
            "memory     210.0 MiB process · 12.0 MiB collections\n"
            "process    1.98 cores busy · 65 connections\n"
            "\n"
            "method              calls   queries  errors     p50     p99\n"
            "Search           41,205/s  41,210/s   0.5/s  900 us  2.1 ms\n"
            "ListCollections       0/s               0/s\n"
            "\n"
            "collection   rows    memory          loaded\n"
            "films       5,000  12.0 MiB  1 min 15 s ago\n");
}

TEST(TopTextTest, FitsAnyWidthFromSixtyColumns) {
  IntervalStats stats = Busy();
  stats.collections[0].name = std::string(60, 'x');
  stats.gpu = GpuStats{"0", 0.37, 71, 65.5, 1 << 30, 16ULL << 30, 2, {"hw_thermal_slowdown"}, {}};
  stats.rejected = {{"queue_full", 12, 1'204}, {"connections_per_peer", 0, 3}};
  for (std::size_t width = 60; width <= 200; width += 7) {
    EXPECT_LE(WidestLine(TopText(stats, "127.0.0.1:50051", Wide(width))), width) << width;
  }
}

TEST(TopTextTest, CutsNothingInAFile) {
  IntervalStats stats = Busy();
  stats.backend.set_reason(std::string(300, 'r'));
  EXPECT_THAT(TopText(stats, "a:1", Terminal{}), HasSubstr(std::string(300, 'r')));
}

TEST(TopTextTest, ShowsWhatTheCardSays) {
  IntervalStats stats = Busy();
  stats.device_bytes = 3 << 20;
  stats.device_bytes_peak = 5 << 20;
  stats.collections[0].device_bytes = 3 << 20;
  stats.gpu = GpuStats{"0",
                       0.37,
                       71,
                       65.5,
                       std::uint64_t{1} << 30,
                       std::uint64_t{16} << 30,
                       2,
                       {"hw_thermal_slowdown"},
                       {{"79", 0, 1}}};
  const std::string text = TopText(stats, "a:1", Terminal{});
  EXPECT_THAT(text, HasSubstr("gpu 0      37 % busy · 1.00 GiB of 16.00 GiB · 71 °C · 66 W · "
                              "slowed: hw_thermal_slowdown · 2 uncorrected ECC errors · "
                              "Xid 79: 1\n"));
  EXPECT_THAT(text, HasSubstr("3.0 MiB on the GPU (peak 5.0 MiB)"));
  EXPECT_THAT(text, HasSubstr("on the GPU"));
}

TEST(TopTextTest, ShowsTroubleOnlyWhenThereIsSome) {
  EXPECT_THAT(TopText(Busy(), "a:1", Terminal{}), Not(HasSubstr("rejected")));
  IntervalStats stats = Busy();
  stats.reloads = {{"published", 0, 3}};
  EXPECT_THAT(TopText(stats, "a:1", Terminal{}), Not(HasSubstr("loads")));
  stats.rejected = {{"queue_full", 12.4, 1'204}};
  stats.fallbacks = {{"device_lost", 0, 1}};
  stats.device_errors = {{"700", 0, 1}};
  stats.reloads = {{"failed", 0.1, 2}};
  const std::string text = TopText(stats, "a:1", Terminal{});
  EXPECT_THAT(text, HasSubstr("rejected   queue_full 12/s, 1,204 in all\n"));
  EXPECT_THAT(text, HasSubstr("fell back  device_lost 0/s, 1 in all\n"));
  EXPECT_THAT(text, HasSubstr("GPU errors 700 0/s, 1 in all\n"));
  EXPECT_THAT(text, HasSubstr("loads      failed 0.1/s, 2 in all\n"));
}

TEST(TopTextTest, SaysThatAPercentileIsBeyondWhatIsCounted) {
  IntervalStats stats = Busy();
  stats.latency->p99_s = std::numeric_limits<double>::infinity();
  EXPECT_THAT(TopText(stats, "a:1", Terminal{}), HasSubstr("900 us p50, > 30 s p99"));
}

TEST(TopTextTest, IsShortOnAServerThatRests) {
  const std::string text = TopText(IntervalStats(), "a:1", Wide(80));
  EXPECT_THAT(text, HasSubstr("traffic    0/s queries · 0/s calls · 0/s errors · 0 in flight\n"));
  EXPECT_THAT(text, Not(HasSubstr("latency")));
  EXPECT_THAT(text, Not(HasSubstr("method")));
}

TEST(TopTextTest, KeepsControlCharactersOfNamesFromTheTerminal) {
  IntervalStats stats = Busy();
  stats.backend.set_reason("bad \x1b[2J reason");
  EXPECT_THAT(TopText(stats, "a:1", Wide(80)), Not(HasSubstr("\x1b")));
}

TEST(TopJsonTest, HasEverythingUnderItsName) {
  IntervalStats stats = Busy();
  stats.rejected = {{"queue_full", 12.5, 1'204}};
  const std::string line = TopJson(stats);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["taken_at"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(json["queries_per_s"], 41'210);
  EXPECT_EQ(json["backend"]["kind"], "cpu");
  EXPECT_EQ(json["latency"]["p99_s"], 2.1e-3);
  EXPECT_EQ(json["methods"][0]["name"], "Search");
  EXPECT_EQ(json["methods"][1]["latency"], nullptr);
  EXPECT_EQ(json["collections"][0]["host_bytes"], 12 << 20);
  EXPECT_EQ(json["rejected"]["queue_full"]["total"], 1'204);
  EXPECT_EQ(json["gpu"], nullptr);
}

TEST(FirstLinesTest, CountsTheLinesThatDoNotFit) {
  EXPECT_EQ(FirstLines("a\nb\nc\n", 3), "a\nb\nc\n");
  EXPECT_EQ(FirstLines("a\nb\nc\nd\n", 3), "a\nb\n2 more lines; a taller window shows them\n");
  EXPECT_EQ(FirstLines("a\nb\n", 1), "2 more lines; a taller window shows them\n");
  EXPECT_EQ(FirstLines("a\nb\n", 0), "a\nb\n");
}

}  // namespace
}  // namespace simile::cli::top

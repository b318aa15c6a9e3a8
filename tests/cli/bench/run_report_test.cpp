#include "cli/bench/run_report.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace simile::cli::bench {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

// 1,000 calls of 10 queries in 2 s, of which 10 took 50 ms and the rest 1 ms; 5 failed.
ReportedRun OneRun() {
  ReportedRun run;
  RunResult& result = run.result;
  result.plan.load = {64, std::nullopt};
  result.plan.connections = 4;
  result.seconds = 2;
  result.client_cpu_s = 0.02;
  result.server_cpu_s = 0.2;
  result.tally = LoadTally(1);
  const MeasuredWindow window{milliseconds(1'000), milliseconds(3'000)};
  for (int i = 0; i < 1'000; ++i) {
    const Nanoseconds sent = milliseconds(1'001 + i);
    result.tally.AddAnswer(0, {sent, sent, sent + milliseconds(i < 10 ? 50 : 1)}, window, 10, 200);
  }
  for (int i = 0; i < 5; ++i) {
    const Nanoseconds sent = milliseconds(1'500);
    result.tally.AddError({sent, sent, sent + milliseconds(2)}, window,
                          {"QUEUE_FULL", "the queue is full"});
  }
  v1::Receipt receipt;
  receipt.set_backend(v1::BACKEND_KIND_CPU);
  receipt.add_engines("int8-amx");
  receipt.set_batch_size(40);
  receipt.set_compute_us(900);
  result.tally.receipts.Add(receipt, 10);
  run.kind_names = {"vector"};
  return run;
}

TEST(RunReportTest, ComputesRatesLatenciesAndCpuOfACall) {
  const nlohmann::ordered_json json =
      RunsJson({"127.0.0.1:1", "films", 5'000, 384, "abc"}, {OneRun()})["runs"][0];
  EXPECT_DOUBLE_EQ(json["queries_per_s"], 5'000);
  EXPECT_DOUBLE_EQ(json["calls_per_s"], 500);
  EXPECT_DOUBLE_EQ(json["answer_bytes_mean"], 200);
  EXPECT_EQ(json["latency"]["count"], 1'000);
  EXPECT_NEAR(json["latency"]["p50_us"], 1'000, 4);
  EXPECT_NEAR(json["latency"]["p99_us"], 1'000, 4);
  EXPECT_NEAR(json["latency"]["p99_9_us"], 50'000, 200);
  EXPECT_NEAR(json["latency"]["mean_us"], 1'490, 1e-6);
  EXPECT_NEAR(json["client_cpu_us_per_call"], 0.02 / 1'005 * 1e6, 1e-9);
  EXPECT_NEAR(json["server_cpu_us_per_call"], 0.2 / 1'005 * 1e6, 1e-9);
  EXPECT_EQ(json["errors"]["QUEUE_FULL"]["count"], 5);
  EXPECT_EQ(json["receipts"]["batch_size_mean"], 40);
  EXPECT_NEAR(json["receipts"]["engine_queries_per_s"], 40 / 900e-6, 1e-3);
  EXPECT_EQ(json["receipts"]["backends"]["cpu: int8-amx"], 1);
  EXPECT_FALSE(json.contains("verify"));
}

TEST(RunReportTest, ShowsRatesErrorsAndChecks) {
  ReportedRun run = OneRun();
  run.checks = CheckSummary{.compared = 7,
                            .wrong = 1,
                            .unchecked = {{"filters", 3}},
                            .findings = {"vector: queries[0]: a is missing"}};
  const std::string text = RunText(run, {});
  EXPECT_THAT(text, HasSubstr("5,000 queries/s in 500 calls/s, 64 in flight over 4 connections"));
  EXPECT_THAT(text, HasSubstr("server CPU  199.0 us a call (0.10 cores)"));
  EXPECT_THAT(text, HasSubstr("errors      5 QUEUE_FULL: the queue is full"));
  EXPECT_THAT(text, HasSubstr("7 answers compared with double precision, 1 wrong"));
  EXPECT_THAT(text, HasSubstr("WRONG  vector: queries[0]: a is missing"));
  EXPECT_THAT(text, HasSubstr("not compared: 3 answers (filters)"));
}

TEST(RunReportTest, ShowsWhatACallerOfAnIntervalWouldHaveSeen) {
  ReportedRun run = OneRun();
  run.expected_interval = milliseconds(10);
  const auto json = RunsJson({}, {run})["runs"][0];
  EXPECT_EQ(json["latency_corrected"]["count"], 1'000 + 10 * 4);  // 40, 30, 20 and 10 ms each
  EXPECT_THAT(RunText(run, {}), HasSubstr("as if called every 10.0 ms"));
}

TEST(RunReportTest, WarnsOfCallsThatWereNeverSent) {
  ReportedRun run = OneRun();
  EXPECT_THAT(RunText(run, {}), Not(HasSubstr("did not keep up")));
  run.result.plan.load = {10, 1'000};
  run.result.unsent = 12;
  EXPECT_THAT(RunText(run, {}), HasSubstr("the server did not keep up: 12 calls never sent"));
}

TEST(RunReportTest, SweepHasALineOfEachLoad) {
  const std::string text = SweepText({OneRun(), OneRun()}, {});
  EXPECT_EQ(std::ranges::count(text, '\n'), 7);  // heading, two loads, their errors and warnings
  EXPECT_THAT(text, HasSubstr("in flight  queries/s"));
}

TEST(RunReportTest, LiveLineShowsTheLastInterval) {
  LiveState state;
  state.elapsed_s = -1;
  EXPECT_EQ(LiveText(state), "warming up, 1 s");
  state.elapsed_s = 5;
  state.duration_s = 10;
  state.queries_per_s = 41'200;
  state.latency.Record(milliseconds(2));
  state.batch_size = 38;
  EXPECT_EQ(LiveText(state),
            "|###################-------------------| 5 s   41,200 q/s   p50 2.00 ms  p99 2.00 ms"
            "   batch 38 (mean)   0 errors");
}

TEST(LoadTallyTest, CountsCallsOfTheWindowOnly) {
  LoadTally tally(1);
  const MeasuredWindow window{milliseconds(100), milliseconds(200)};
  const auto answer = [&](int intended, int done) {
    tally.AddAnswer(0, {milliseconds(intended), milliseconds(intended), milliseconds(done)}, window,
                    1, 1);
  };
  answer(50, 150);   // of the warm-up: no latency; it ends within the window: of the rate
  answer(150, 250);  // the other way round
  answer(150, 160);
  answer(250, 260);  // neither
  EXPECT_EQ(tally.All().count(), 2U);
  EXPECT_EQ(tally.calls_in_window, 2U);
}

TEST(RunReportTest, SaysWhatTheEngineAnswersAlone) {
  ReportedRun run = OneRun();
  EXPECT_THAT(RunText(run, {}), HasSubstr("alone it answers such batches at 44,444 queries/s\n"));
  EXPECT_THAT(RunText(run, {}),
              HasSubstr("warning: passes held 40.0 queries on average of 640 in flight"));
  run.result.plan.load.in_flight = 12;
  EXPECT_THAT(RunText(run, {}), Not(HasSubstr("warning: passes held")));
  run.result.plan.load = {64, 500.0};
  EXPECT_THAT(RunText(run, {}), Not(HasSubstr("warning: passes held")))
      << "what is in flight in an open loop is not known";
  // Of a call of several passes.
  ReceiptTally receipts;
  v1::Receipt receipt;
  receipt.set_batch_size(100);
  receipt.set_compute_us(2'000);
  receipts.Add(receipt, 1'000);
  EXPECT_NEAR(*receipts.EngineQueriesPerSecond(), 500'000, 1e-6);
  EXPECT_EQ(ReceiptTally().EngineQueriesPerSecond(), std::nullopt);
}

TEST(RunReportTest, SaysHowBusyTheCardWas) {
  ReportedRun run = OneRun();
  EXPECT_THAT(RunText(run, {}), Not(HasSubstr("card ")));
  EXPECT_EQ(RunsJson({}, {run})["runs"][0]["card"], nullptr);
  run.result.card = CardUse{.name = "NVIDIA T4",
                            .readings = 40,
                            .utilization_mean = 0.71,
                            .utilization_max = 0.8,
                            .memory_used_bytes_max = std::uint64_t{2} << 30,
                            .memory_total_bytes = std::uint64_t{15} << 30};
  EXPECT_THAT(RunText(run, {}), Not(HasSubstr("card "))) << "the CPU answered";
  v1::Receipt receipt;
  receipt.set_backend(v1::BACKEND_KIND_GPU);
  receipt.add_engines("fp16-scan-sm75");
  run.result.tally.receipts.Add(receipt, 10);
  EXPECT_THAT(
      RunText(run, {}),
      HasSubstr("card        NVIDIA T4: 71 % busy, at most 80 %; at most 2.00 GiB of 15.00 GiB "
                "used by all processes (40 readings)\n"));
  const nlohmann::ordered_json card = RunsJson({}, {run})["runs"][0]["card"];
  EXPECT_EQ(card["utilization_ratio_mean"], 0.71);
  EXPECT_EQ(card["memory_used_bytes_max"], std::uint64_t{2} << 30);
  EXPECT_THAT(SweepText({run, OneRun()}, {}), HasSubstr("card busy"));
  EXPECT_THAT(SweepText({OneRun(), OneRun()}, {}), Not(HasSubstr("card busy")));
}

TEST(RunReportTest, SaysWhyTheCardThatAnsweredIsUnknown) {
  ReportedRun run = OneRun();
  run.result.card = CardUse{.why_not = "no library"};
  EXPECT_THAT(RunText(run, {}), Not(HasSubstr("card ")));  // the CPU answered
  v1::Receipt receipt;
  receipt.set_backend(v1::BACKEND_KIND_GPU);
  receipt.add_engines("fp16-scan-sm75");
  run.result.tally.receipts.Add(receipt, 10);
  EXPECT_THAT(RunText(run, {}), HasSubstr("card        unknown: no library\n"));
}

}  // namespace
}  // namespace simile::cli::bench

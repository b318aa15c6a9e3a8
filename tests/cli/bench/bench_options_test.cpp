#include "cli/bench/bench_options.h"

#include <chrono>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/quantity_text.h"

namespace simile::cli::bench {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(BenchOptionsTest, DefaultsToAClosedLoopOfVectors) {
  const auto options = MakeBenchOptions(BenchFlags());
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->plans.size(), 1U);
  const RunPlan& plan = options->plans[0];
  EXPECT_EQ(plan.load.in_flight, 64U);
  EXPECT_EQ(plan.load.rate, std::nullopt);
  EXPECT_EQ(plan.connections, 4U);
  EXPECT_LE(plan.threads, plan.connections);
  EXPECT_EQ(plan.warm_up, milliseconds(2'000));
  EXPECT_EQ(plan.duration, milliseconds(10'000));
  ASSERT_EQ(options->specs.size(), 1U);
  EXPECT_EQ(options->specs[0].kind->name, "vector");
  EXPECT_EQ(options->specs[0].payload->selection(), v1::PayloadSelector::SELECTION_NONE);
}

TEST(BenchOptionsTest, MakesARunOfEachLoad) {
  BenchFlags flags;
  flags.in_flight = {"1", "300"};
  auto options = MakeBenchOptions(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->plans.size(), 2U);
  EXPECT_EQ(options->plans[0].connections, 1U);
  EXPECT_EQ(options->plans[0].threads, 1U);
  EXPECT_EQ(options->plans[1].load.in_flight, 300U);
  EXPECT_EQ(options->plans[1].connections, 5U);  // at most 64 calls each

  flags.in_flight = {"50"};
  flags.rate = {"100", "250.5"};
  flags.stream = true;
  options = MakeBenchOptions(flags);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->plans[1].load.rate, 250.5);
  EXPECT_EQ(options->plans[1].load.in_flight, 50U);
  EXPECT_EQ(options->plans[1].transport, Transport::kStream);
}

TEST(BenchOptionsTest, ReadsTimes) {
  EXPECT_EQ(ParseDuration("250us").value(), std::chrono::microseconds(250));
  EXPECT_EQ(ParseDuration("500ms").value(), milliseconds(500));
  EXPECT_EQ(ParseDuration("1.5s").value(), milliseconds(1'500));
  EXPECT_EQ(ParseDuration("30").value(), milliseconds(30'000));
  EXPECT_EQ(ParseDuration("2m").value(), milliseconds(120'000));
  for (const char* text : {"", "s", "5h", "-1s", "1e9", "nan", "10 s"}) {
    EXPECT_THAT(std::string(ParseDuration(text).status().message()), HasSubstr("is no time"))
        << text;
  }
}

TEST(BenchOptionsTest, NamesTheFlagThatIsWrong) {
  const std::pair<std::function<void(BenchFlags&)>, const char*> cases[] = {
      {[](auto& flags) { flags.in_flight = {"0"}; },
       "--in-flight: \"0\" is not a number from 1 to 10000"},
      {[](auto& flags) { flags.in_flight = {"x"}; }, "--in-flight: \"x\" is not a number"},
      {[](auto& flags) { flags.rate = {"-5"}; }, "--rate: \"-5\" is not a number"},
      {[](auto& flags) {
         flags.rate = {"5"};
         flags.in_flight = {"1", "2"};
       },
       "--in-flight: several values and --rate together"},
      {[](auto& flags) {
         flags.rate = {"5"};
         flags.expected_interval = "5ms";
       },
       "--expected-interval: an open loop"},
      {[](auto& flags) { flags.expected_interval = "0s"; }, "--expected-interval: give a time"},
      {[](auto& flags) { flags.connections = 0; }, "--connections: 0 is not a number from 1"},
      {[](auto& flags) { flags.threads = 65; }, "--threads: 65 is not a number from 1 to 64"},
      {[](auto& flags) { flags.duration = "10ms"; }, "--duration: at least 100ms"},
      {[](auto& flags) { flags.warm_up = "soon"; }, "--warm-up: \"soon\" is no time"},
      {[](auto& flags) { flags.batch = 1'025; }, "--batch: 1025 is not a number from 1 to 1,024"},
      {[](auto& flags) { flags.k = 0; }, "-k: 0 is not a number from 1 to 10,000"},
      {[](auto& flags) { flags.verify_share = 1.5; }, "--verify: 1.5 is not a share"},
      {[](auto& flags) { flags.plot = "load.svg"; }, "--plot: needs several loads"},
      {[](auto& flags) { flags.client.timeout_s = 0; }, "--timeout: 0 is not a number above 0"},
      {[](auto& flags) {
         flags.mix = "mix.json";
         flags.batch = 5;
       },
       "--mix: has filters and batch sizes of its own"},
      {[](auto& flags) { flags.hourly_price = 2; }, "--hourly-price: needs --report a100"},
      {[](auto& flags) { flags.compare = "cpu"; }, "--compare: cpu needs --folder FOLDER"},
      {[](auto& flags) { flags.compare = "http://films"; },
       "--compare: give cpu, or the other server: "},
      {[](auto& flags) {
         flags.compare = "films:50051";
         flags.rate = {"5"};
       },
       "--rate: not together with --compare"},
      {[](auto& flags) {
         flags.compare = "films:50051";
         flags.report = "a100";
       },
       "--compare: not together with --report"},
      {[](auto& flags) { flags.cpu_server = "b"; },
       "--cpu-server: needs --report a100, or --verify"},
      {[](auto& flags) { flags.report = "h100"; }, "--report: there is no report \"h100\""},
      {[](auto& flags) {
         flags.report = "a100";
         flags.cpu_server = "http://b";
       },
       "--cpu-server: give HOST:PORT"},
      {[](auto& flags) {
         flags.report = "a100";
         flags.hourly_price = 1;
         flags.cpu_hourly_price = 2;
       },
       "--cpu-hourly-price: needs --cpu-server"},
      {[](auto& flags) {
         flags.report = "a100";
         flags.rate = {"5"};
       },
       "--rate: not together with --report"},
      {[](auto& flags) {
         flags.report = "a100";
         flags.hourly_price = -1;
       },
       "--hourly-price: -1 is no price"},
      {[](auto& flags) { flags.server_pid = 0; }, "--server-pid: there is no process 0"},
      {[](auto& flags) { flags.server_pid = 4'000'000'000; }, "--server-pid: there is no process"},
  };
  for (const auto& [set, message] : cases) {
    BenchFlags flags;
    set(flags);
    const auto options = MakeBenchOptions(flags);
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace simile::cli::bench

// The load generator against a server that stalls: what it reports is compared with what the server
// recorded.
#include "cli/bench/load_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/split_mix.h"
#include "cli/bench/stalling_server.h"

namespace simile::cli::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kStall = seconds(1);
constexpr double kRate = 500;
constexpr std::uint64_t kSeed = 4;
// How late calls may be on a calm machine.
constexpr milliseconds kLate{150};

// How late a thread wakes at most on this machine while it lives. On a busy machine the threads of
// a run are late, too: each call passes several of them.
class WakeLateness {
 public:
  // What is added to a latency at most.
  Nanoseconds End() {
    thread_.request_stop();
    thread_.join();
    return std::max<Nanoseconds>(kLate, 10 * latest_);
  }

 private:
  void Watch(const std::stop_token& ended) {
    constexpr milliseconds kPause{1};
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    while (!ended.stop_requested()) {
      const auto begin = std::chrono::steady_clock::now();
      wake.wait_for(lock, ended, kPause, [] { return false; });
      latest_ = std::max<Nanoseconds>(latest_, std::chrono::steady_clock::now() - begin - kPause);
    }
  }

  Nanoseconds latest_{0};
  std::jthread thread_{[this](const std::stop_token& ended) { Watch(ended); }};
};

RequestPool Requests() {
  QuerySamples samples;
  samples.collection = "c";
  samples.dim = 1;
  samples.query_vectors = {{1}};
  CallSpec spec;
  spec.kind = FindCallKind("vector");
  return *RequestPool::Make(std::vector{spec}, samples, 1);
}

RunPlan Plan(const StallingServer& server) {
  RunPlan plan;
  plan.address = server.address();
  plan.warm_up = milliseconds(0);
  plan.duration = seconds(3);
  plan.seed = kSeed;
  return plan;
}

// The latencies that callers see who call at the times of the plan's arrivals, by the stall that
// the server recorded.
std::vector<Nanoseconds> TrueLatencies(const RunPlan& plan, const StallingServer::Record& record) {
  LoadPace pace(plan.load, base::SplitMix(plan.seed));
  std::vector<Nanoseconds> latencies;
  Nanoseconds first{0};
  while (const auto arrival = pace.SkipBefore(plan.duration)) {
    if (latencies.empty()) first = *arrival;
    const auto time = *record.first_call + (*arrival - first);
    const bool waits = time >= record.stall_begin && time < record.stall_end;
    latencies.push_back(waits ? Nanoseconds(record.stall_end - time) : Nanoseconds(0));
  }
  std::ranges::sort(latencies);
  return latencies;
}

TEST(LoadRunTest, OpenLoopShowsAStallInFull) {
  StallingServer server(milliseconds(500), kStall);
  RunPlan plan = Plan(server);
  plan.load = {1'000, kRate};
  WakeLateness lateness;
  const auto result = RunLoad(plan, Requests(), nullptr);
  const Nanoseconds late = lateness.End();
  ASSERT_TRUE(result.ok()) << result.status();
  const LatencyHistogram told = result->tally.All();
  const std::vector<Nanoseconds> truth = TrueLatencies(plan, server.record());
  EXPECT_EQ(told.count(), truth.size());
  EXPECT_EQ(result->unsent, 0U);
  EXPECT_TRUE(result->tally.errors.empty());
  for (const double share : {0.75, 0.9, 0.99, 0.999}) {
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(truth.size())));
    const Nanoseconds expected = truth[rank - 1];
    EXPECT_GE(told.Percentile(share), expected - milliseconds(20)) << share;
    EXPECT_LE(told.Percentile(share), expected + late) << share;
  }
  EXPECT_GE(told.Percentile(0.999), kStall - milliseconds(20));
}

// A server that has no such stream ends each one at once: every request fails, and the run ends.
TEST(LoadRunTest, RequestsOfStreamsThatEndFail) {
  const StallingServer server(seconds(60), kStall);
  for (const Load& load : {Load{32, std::nullopt}, Load{32, kRate}}) {
    RunPlan plan = Plan(server);
    plan.transport = Transport::kStream;
    plan.connections = 2;
    plan.duration = milliseconds(300);
    plan.load = load;
    const auto result = RunLoad(plan, Requests(), nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->tally.All().count(), 0U);
    ASSERT_EQ(result->tally.errors.size(), 1U);
    EXPECT_EQ(result->tally.errors.begin()->first, "UNIMPLEMENTED");
    EXPECT_GT(result->tally.failed.count(), 0U);
  }
}

// A stream that fails while its first request is sent still answers for it.
TEST(LoadRunTest, RequestsOfStreamsFailWhenTheServerIsGone) {
  for (const Load& load : {Load{32, std::nullopt}, Load{32, 2'000.0}}) {
    std::optional<StallingServer> server(std::in_place, seconds(60), kStall);
    RunPlan plan = Plan(*server);
    plan.transport = Transport::kStream;
    plan.connections = 4;
    plan.duration = milliseconds(1'500);
    plan.load = load;
    const auto result = RunLoad(plan, Requests(), [&](const LiveState&) { server.reset(); });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->tally.errors.contains("UNAVAILABLE"));
    EXPECT_EQ(result->tally.All().count(), result->unsent);
  }
}

// With too few calls in flight the rest is sent late; latencies count from when it was due.
TEST(LoadRunTest, OpenLoopCountsCallsThatWaitedToBeSent) {
  StallingServer server(milliseconds(500), kStall);
  RunPlan plan = Plan(server);
  plan.load = {4, kRate};
  const auto result = RunLoad(plan, Requests(), nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<Nanoseconds> truth = TrueLatencies(plan, server.record());
  EXPECT_EQ(result->tally.All().count(), truth.size());
  EXPECT_GE(result->tally.All().Percentile(0.9), truth[truth.size() * 9 / 10] - milliseconds(20));
  EXPECT_GE(result->tally.send_delay.Percentile(0.9), milliseconds(100));
}

TEST(LoadRunTest, OpenLoopCountsCallsThatWereNeverSent) {
  StallingServer server(milliseconds(200), kStall);
  RunPlan plan = Plan(server);
  plan.duration = milliseconds(800);
  plan.load = {4, kRate};
  const auto result = RunLoad(plan, Requests(), nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->unsent, 150U);  // of about 300 in 600 ms
  EXPECT_EQ(result->tally.All().count(), TrueLatencies(plan, server.record()).size());
  EXPECT_GE(result->tally.All().Percentile(0.99), milliseconds(500));
}

// A closed loop of one call meets the stall once; the correction adds the calls that it kept back.
TEST(LoadRunTest, ClosedLoopNeedsTheCorrection) {
  StallingServer server(milliseconds(500), kStall);
  RunPlan plan = Plan(server);
  plan.load = {1, std::nullopt};
  const auto result = RunLoad(plan, Requests(), nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  const LatencyHistogram told = result->tally.All();
  ASSERT_GE(told.count(), 100U);
  const double all_but_one = 1 - 1.5 / static_cast<double>(told.count());
  EXPECT_LT(told.Percentile(all_but_one), milliseconds(500));
  EXPECT_GE(told.max(), kStall - milliseconds(20));
  const LatencyHistogram corrected = told.Corrected(milliseconds(2));
  EXPECT_GE(corrected.Percentile(0.999), milliseconds(800));
}

}  // namespace
}  // namespace simile::cli::bench

#include "app/better_tuning.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/split_mix.h"
#include "engine/fake_clock.h"

namespace simile::app {
namespace {

using backend::cpu::RatioRange;
using backend::cpu::TimePair;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

constexpr std::size_t kKiB = 1'024;

// A machine on which the time of every search is known, but for noise. A search moves the clock.
class FakeMachine final : public TuneProbe {
 public:
  explicit FakeMachine(engine::FakeClock& clock) : clock_(clock) {}

  std::vector<TimePair> TimeInTurn(const EngineSetup& first, const EngineSetup& second,
                                   const Workload& workload, std::size_t count,
                                   Clock::TimePoint until) override {
    std::vector<TimePair> pairs;
    while (pairs.size() < count && clock_.Now() < until && !silent) {
      pairs.push_back({Time(first, workload), Time(second, workload)});
      clock_.Advance(milliseconds(1));
      ++pairs_timed;
    }
    return pairs;
  }
  double OtherLoad() override { return other_load; }

  // The relative time of a search; 1 unless a test says otherwise.
  std::function<double(const EngineSetup& setup, const Workload& workload)> cost =
      [](const EngineSetup&, const Workload&) { return 1.0; };
  double noise = 0.02;        // each time is up to this share longer or shorter
  double interrupted = 0.05;  // of the searches take three times as long
  double other_load = 0;
  bool silent = false;
  std::size_t pairs_timed = 0;

 private:
  double Uniform() { return static_cast<double>(base::NextSplitMix(state_) >> 11U) * 0x1p-53; }
  double Time(const EngineSetup& setup, const Workload& workload) {
    const double disturbed = Uniform() < interrupted ? 3 : 1;
    return cost(setup, workload) * (1 + noise * (2 * Uniform() - 1)) * disturbed * 1e-3;
  }

  engine::FakeClock& clock_;
  std::uint64_t state_ = 1;
};

class BetterTuningTest : public testing::Test {
 protected:
  BetterTuningTest() {
    task_.before.threads = 4;
    task_.threads_usable = 4;
    task_.collections = {{"films", 5'000, 5'000 * 384}};
    task_.kernels_differ = true;
    task_.int4_possible = true;
    task_.batch_max = 1'024;
    task_.duration = seconds(60);
  }

  BetterTuning Find() { return FindBetterTuning(task_, machine_, clock_, {}); }
  static const TunedParameter& ParameterOf(const BetterTuning& better, const std::string& name) {
    return *std::ranges::find(better.parameters, name, &TunedParameter::name);
  }

  engine::FakeClock clock_;
  FakeMachine machine_{clock_};
  TuneTask task_;
};

TEST_F(BetterTuningTest, ChangesNothingWhereNothingIsBetter) {
  const BetterTuning better = Find();
  EXPECT_EQ(better.after, task_.before);
  for (const TunedParameter& parameter : better.parameters) {
    EXPECT_EQ(parameter.before, parameter.after) << parameter.name();
    EXPECT_FALSE(parameter.ratio.has_value()) << parameter.name();
    EXPECT_NE(parameter.conclusion, TuneConclusion::kChanged) << parameter.name();
  }
  EXPECT_EQ(ParameterOf(better, "block_bytes").conclusion, TuneConclusion::kNoneBetter);
  EXPECT_EQ(ParameterOf(better, "int4_from_code_bytes").conclusion, TuneConclusion::kNoneBetter);
}

// Whatever the noise, a parameter is changed for a gain only.
TEST_F(BetterTuningTest, ChangesNothingForNoise) {
  machine_.noise = 0.3;
  machine_.interrupted = 0.2;
  for (int run = 0; run < 20; ++run) EXPECT_EQ(Find().after, task_.before) << run;
}

TEST_F(BetterTuningTest, TakesAGainAndSaysWhereItWasFound) {
  machine_.cost = [](const EngineSetup& setup, const Workload& workload) {
    return setup.tuning.block_bytes == 384 * kKiB && workload.batch == 64 ? 0.9 : 1.0;
  };
  const BetterTuning better = Find();
  EXPECT_EQ(better.after.tuning.block_bytes, 384 * kKiB);
  const TunedParameter& parameter = ParameterOf(better, "block_bytes");
  EXPECT_EQ(parameter.before, 192 * kKiB);
  EXPECT_EQ(parameter.after, 384 * kKiB);
  EXPECT_EQ(parameter.conclusion, TuneConclusion::kChanged);
  ASSERT_TRUE(parameter.ratio.has_value());
  EXPECT_THAT(parameter.ratio->median, AllOf(Ge(0.88), Le(0.92)));
  EXPECT_LE(parameter.ratio->low, parameter.ratio->median);
  EXPECT_GE(parameter.ratio->high, parameter.ratio->median);
  EXPECT_EQ(parameter.workload, (Workload{0, 64, 0}));
}

TEST_F(BetterTuningTest, LeavesAGainThatCostsAnotherSearchMore) {
  machine_.cost = [](const EngineSetup& setup, const Workload& workload) {
    if (setup.tuning.block_bytes <= 192 * kKiB) return 1.0;
    return workload.batch == 64 ? 0.8 : 1.05;
  };
  EXPECT_EQ(Find().after, task_.before);
}

TEST_F(BetterTuningTest, LeavesAGainBelowTheThreshold) {
  machine_.noise = 0;
  machine_.cost = [](const EngineSetup& setup, const Workload&) {
    return setup.tuning.block_bytes == 256 * kKiB ? 1 - kBetterShare / 2 : 1.0;
  };
  EXPECT_EQ(Find().after, task_.before);
}

TEST_F(BetterTuningTest, FollowsAGainAsFarAsItGoes) {
  machine_.cost = [](const EngineSetup& setup, const Workload&) {
    return std::abs(std::log2(static_cast<double>(setup.tuning.block_bytes) / (768 * kKiB))) + 1;
  };
  EXPECT_EQ(Find().after.tuning.block_bytes, 768 * kKiB);
}

// Changes that are good one by one and bad for a search that none of them concerned.
TEST_F(BetterTuningTest, TakesTheLeastGainBackWhereServiceBecomesSlower) {
  machine_.cost = [](const EngineSetup& setup, const Workload& workload) {
    const bool blocks = setup.tuning.block_bytes != 192 * kKiB;
    const bool gathers = setup.tuning.gather_share != 16;
    if (workload.rows_for_one == 20 && gathers && blocks) return 1.2;
    if (workload.rows_for_one > 0) return gathers ? 0.95 : 1.0;
    return blocks ? 0.8 : 1.0;
  };
  const BetterTuning better = Find();
  EXPECT_NE(better.after.tuning.block_bytes, 192 * kKiB);
  EXPECT_EQ(better.after.tuning.gather_share, 16U);
  EXPECT_EQ(ParameterOf(better, "gather_share").conclusion, TuneConclusion::kWithdrawn);
  for (const TunedWorkload& each : better.workloads) {
    ASSERT_TRUE(each.ratio.has_value());
    EXPECT_FALSE(IsSlower(*each.ratio)) << each.workload.batch;
  }
}

TEST_F(BetterTuningTest, MeasuresOnlySearchesThatAChangeConcerns) {
  machine_.noise = 0;
  machine_.interrupted = 0;
  // Large batches gain by the large kernel; small ones lose by it.
  machine_.cost = [](const EngineSetup& setup, const Workload& workload) {
    const bool large = workload.batch >= setup.tuning.large_batch_min;
    return large == (workload.batch >= 12) ? 1.0 : 1.5;
  };
  EXPECT_EQ(Find().after.tuning.large_batch_min, 12U);
  // A collection of this size is packed with 4,096 and scanned with 8,192.
  machine_.cost = [](const EngineSetup& setup, const Workload&) {
    return setup.tuning.scan_rows_max >= 5'000 ? 0.7 : 1.0;
  };
  EXPECT_EQ(Find().after.tuning.scan_rows_max, 8'192U);
  machine_.cost = [](const EngineSetup& setup, const Workload& workload) {
    return setup.tuning.int4_from_code_bytes <= 5'000 * 384 && workload.batch <= 4 ? 0.7 : 1.0;
  };
  EXPECT_EQ(Find().after.tuning.int4_from_code_bytes, 1U << 20U);
}

TEST_F(BetterTuningTest, MayLeaveAStrategyOutAltogether) {
  machine_.noise = 0;
  machine_.cost = [](const EngineSetup& setup, const Workload& workload) {
    return workload.batch >= setup.tuning.large_batch_min ? 1.5 : 1.0;
  };
  EXPECT_GT(Find().after.tuning.large_batch_min, task_.batch_max);
}

TEST_F(BetterTuningTest, NeedsAChoiceToMakeOne) {
  task_.kernels_differ = false;
  task_.int4_possible = false;
  task_.threads_usable = 1;
  task_.before.threads = 1;
  const BetterTuning better = Find();
  for (const char* name :
       {"threads", "large_batch_min", "int4_from_code_bytes", "queries_of_thread_min"}) {
    EXPECT_EQ(ParameterOf(better, name).conclusion, TuneConclusion::kNoChoice) << name;
  }
}

TEST_F(BetterTuningTest, TunesTheThreadsUnlessTheyAreSet) {
  machine_.cost = [](const EngineSetup& setup, const Workload&) {
    return setup.threads == 2 ? 0.8 : 1.0;
  };
  EXPECT_EQ(Find().after.threads, 2U);
  task_.threads_free = false;
  const BetterTuning fixed = Find();
  EXPECT_EQ(fixed.after.threads, 4U);
  EXPECT_EQ(ParameterOf(fixed, "threads").conclusion, TuneConclusion::kFixed);
}

TEST_F(BetterTuningTest, LeavesEverythingAloneOnABusyMachine) {
  machine_.other_load = 0.4;
  machine_.cost = [](const EngineSetup& setup, const Workload&) {
    return setup.threads == 2 && setup.tuning.block_bytes > 192 * kKiB ? 0.8 : 1.0;
  };
  task_.before.threads = 2;
  const BetterTuning better = Find();
  EXPECT_EQ(better.after, task_.before);
  EXPECT_EQ(ParameterOf(better, "block_bytes").after, 192 * kKiB);
  EXPECT_EQ(ParameterOf(better, "block_bytes").conclusion, TuneConclusion::kBusy);
  EXPECT_EQ(ParameterOf(better, "gather_share").conclusion, TuneConclusion::kNoneBetter);
  EXPECT_DOUBLE_EQ(better.other_load, 0.4);
}

TEST_F(BetterTuningTest, LeavesEverythingAloneWhereItBecameBusyInTheEnd) {
  machine_.cost = [](const EngineSetup& setup, const Workload&) {
    return setup.tuning.block_bytes > 192 * kKiB ? 0.8 : 1.0;
  };
  bool changed = false;
  const BetterTuning better =
      FindBetterTuning(task_, machine_, clock_, [&](double, const std::string& what) {
        if (!what.starts_with("before and after")) return;
        changed = true;
        machine_.other_load = 0.4;
      });
  EXPECT_TRUE(changed);
  EXPECT_EQ(better.after, task_.before);
  EXPECT_EQ(ParameterOf(better, "block_bytes").conclusion, TuneConclusion::kBusy);
  for (const TunedWorkload& each : better.workloads) {
    EXPECT_FALSE(each.ratio.has_value());
    EXPECT_DOUBLE_EQ(each.after_s, each.before_s);
  }
}

TEST_F(BetterTuningTest, EndsInTimeWithWhatItHas) {
  machine_.noise = 0.3;
  for (const auto duration : {milliseconds(1), milliseconds(50), milliseconds(2'000)}) {
    task_.duration = duration;
    const Clock::TimePoint start = clock_.Now();
    const BetterTuning better = Find();
    EXPECT_LE(clock_.Now() - start, duration + milliseconds(1));
    EXPECT_EQ(better.after, task_.before);
    EXPECT_EQ(better.parameters.size(), backend::cpu::TuningValues().size() + 1);
  }
}

TEST_F(BetterTuningTest, SaysWhatWasNotMeasured) {
  machine_.silent = true;
  const BetterTuning better = Find();
  EXPECT_EQ(better.after, task_.before);
  EXPECT_EQ(ParameterOf(better, "block_bytes").conclusion, TuneConclusion::kNoTime);
  for (const TunedWorkload& each : better.workloads) EXPECT_FALSE(each.ratio.has_value());
  EXPECT_FALSE(SufficientBatch(better.workloads, 0, 0.95).has_value());
}

TEST_F(BetterTuningTest, ReportsItsProgress) {
  double last = 0;
  std::string what;
  FindBetterTuning(task_, machine_, clock_, [&](double share, const std::string& text) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1);
    last = share;
    what = text;
  });
  EXPECT_THAT(what, testing::HasSubstr("films, 1,024 queries"));
}

TEST(SufficientBatchTest, IsTheSmallestNearTheBestRate) {
  std::vector<TunedWorkload> workloads;
  // 100, 400, 960 and 1,000 queries a second.
  for (const auto& [batch, after_s] :
       std::vector<std::pair<std::size_t, double>>{{1, 0.01}, {4, 0.01}, {96, 0.1}, {1'000, 1}}) {
    workloads.push_back({{0, batch, 0}, 1, after_s, std::nullopt});
  }
  workloads.push_back({{0, 1, 20}, 1, 1e-6, std::nullopt});  // a filter: another kind of search
  workloads.push_back({{1, 1, 0}, 1, 1e-6, std::nullopt});   // another collection
  const auto sufficient = SufficientBatch(workloads, 0, 0.95);
  ASSERT_TRUE(sufficient.has_value());
  EXPECT_EQ(sufficient->sufficient.batch, 96U);
  EXPECT_DOUBLE_EQ(sufficient->sufficient.queries_per_second, 960);
  EXPECT_EQ(sufficient->largest.batch, 1'000U);
  EXPECT_EQ(SufficientBatch(workloads, 1, 0.95)->sufficient.batch, 1U);
  EXPECT_FALSE(SufficientBatch(workloads, 2, 0.95).has_value());
}

TEST(RatioJudgementTest, NeedsTheWholeIntervalForAGain) {
  EXPECT_TRUE(IsBetter({0.9, 0.85, 0.97}));
  EXPECT_FALSE(IsBetter({0.9, 0.8, 0.99}));
  EXPECT_TRUE(IsSlower({1.1, 1.05, 1.2}));
  EXPECT_FALSE(IsSlower({1.1, 0.99, 1.2}));
  EXPECT_FALSE(IsSlower({1.005, 1.001, 1.01}));
}

TEST(WorkloadTextTest, NamesCollectionBatchAndFilter) {
  const std::vector<TunedShape> shapes{{"films", 1, 1}};
  EXPECT_EQ(WorkloadText({0, 1, 0}, shapes), "films, 1 query");
  EXPECT_EQ(WorkloadText({0, 1'024, 16}, shapes), "films, 1,024 queries, one row in 16 passes");
}

}  // namespace
}  // namespace simile::app

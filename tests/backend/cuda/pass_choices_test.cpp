// The choice of passes by their times: the search with times that are injected, and whole loads on
// the emulated device.
#include "backend/cuda/pass_choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <tuple>
#include <vector>

#include "backend/cpu/scan_backend.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/planned_cards.h"
#include "backend/segments.h"
#include "certificate/canonical_score.h"
#include "emulated_cuda/emulated_device.h"
#include "kernels/answers.h"

namespace simile::backend::cuda {
namespace {

using tests::SeededRandom;

// Times of passes: a factor for each variant, and for each of its forms a small one.
class TimeTable {
 public:
  explicit TimeTable(std::uint64_t seed) : random_(seed) {}

  double Of(const PassPlan& plan, const PassClass& of) {
    const auto variant = static_cast<unsigned>(plan.variant - KernelVariants().data());
    const auto factor = [&](double range, unsigned part, unsigned value) {
      const auto [at, added] =
          factors_.try_emplace({of.queries_max, of.hits_max, variant, part, value}, 0.0);
      if (added) at->second = 1 + range * static_cast<double>(random_.Signed());
      return at->second;
    };
    constexpr double kOfForm = 0.06;
    return 1e-4 * factor(0.8, 0, 0) * factor(kOfForm, 1, static_cast<unsigned>(plan.finish)) *
           factor(kOfForm, 2, plan.is_mapped ? 1 : 0) * factor(kOfForm, 3, plan.second_gate_share) *
           factor(kOfForm, 4, plan.tile_rows);
  }

 private:
  SeededRandom random_;
  std::map<std::tuple<unsigned, unsigned, unsigned, unsigned, unsigned>, double> factors_;
};

// What choices are made for on an H200; the test sets how trials end.
class Chooser {
 public:
  explicit Chooser(const SegmentSize& segment) : segment_(segment) {}

  PassDemand MakeDemand(const PassClass& of) const {
    PassDemand demand;
    demand.queries = of.queries_max;
    demand.hits_max = demand.reach_max = of.hits_timed;
    demand.int8_rows = true;
    return demand;
  }
  std::optional<PassPlan> Planned(const PassClass& of, const PassChoice* choice) const {
    PassDemand demand = MakeDemand(of);
    demand.choice = choice;
    return PlanPass(card_, tuning_, workspace_, segment_, demand);
  }
  // Every plan that some choice leads to.
  std::vector<PassPlan> All(const PassClass& of) const {
    std::vector<PassPlan> plans;
    for (const KernelVariant& variant : KernelVariants()) {
      PassDemand demand = MakeDemand(of);
      const auto plain = PlanVariant(variant, card_, tuning_, workspace_, segment_, demand);
      if (!plain) continue;
      for (const FinishForm finish : kFinishForms) {
        for (const bool mapped : {false, true}) {
          for (const unsigned share : {0U, 4U, 8U, 16U}) {
            for (const double tile_factor : {0.5, 1.0, 2.0, 4.0}) {
              const PassChoice choice{&variant, finish, mapped, share, tile_factor};
              demand.choice = &choice;
              const auto plan = PlanVariant(variant, card_, tuning_, workspace_, segment_, demand);
              if (plan && plan->slots >= demand.queries) plans.push_back(*plan);
            }
          }
        }
      }
    }
    return plans;
  }

  template <class Time>
  PassChoices Choose(Time time) const {
    PassChoices choices;
    Choose(time, choices);
    return choices;
  }
  template <class Time>
  void Choose(Time time, PassChoices& choices) const {
    MeasureChoices(
        {.card = card_,
         .tuning = tuning_,
         .workspace = workspace_,
         .segment = segment_,
         .demand = [&](const PassClass& of) { return MakeDemand(of); },
         .time = time,
         .time_filtered =
             [&](unsigned one_row_in, bool as_list) {
               return Trial{Trial::End::kTimed, as_list ? 1.0 / one_row_in : 1.0 / least_list_};
             }},
        choices);
  }
  void set_least_list(unsigned share) { least_list_ = share; }

 private:
  const CardTraits card_ = H200();
  const GpuTuning tuning_;
  const WorkspaceSize workspace_;
  const SegmentSize segment_;
  unsigned least_list_ = 32;
};

TEST(PassChoicesTest, TheFastestPassIsChosenInRandomTables) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Chooser chooser(seed % 2 == 0 ? kSentences : kMillion);
    TimeTable table(seed);
    const PassChoices choices = chooser.Choose([&](const PassPlan& plan, const PassClass& of) {
      return Trial{Trial::End::kTimed, table.Of(plan, of)};
    });
    for (std::size_t i = 0; i < PassClasses().size(); ++i) {
      const PassClass& of = PassClasses()[i];
      const auto by_rules = chooser.Planned(of, nullptr);
      if (!by_rules || by_rules->slots < of.queries_max) continue;
      ASSERT_TRUE(choices.Has(i)) << "seed " << seed << ", class " << i;
      const PassChoice* const choice = choices.Find(of.queries_max, of.hits_timed);
      const double chosen = table.Of(*chooser.Planned(of, choice), of);
      double least = chosen;
      for (const PassPlan& plan : chooser.All(of)) least = std::min(least, table.Of(plan, of));
      EXPECT_LE(0.97 * chosen, least) << "seed " << seed << ", class " << i;
    }
  }
}

TEST(PassChoicesTest, ASmallGainIsNoise) {
  const Chooser chooser(kSentences);
  const PassChoices choices = chooser.Choose([&](const PassPlan& plan, const PassClass& of) {
    const auto by_rules = chooser.Planned(of, nullptr);
    return Trial{Trial::End::kTimed, ToChoice(plan) == ToChoice(*by_rules) ? 1.0 : 0.98};
  });
  for (const PassClass& of : PassClasses()) {
    EXPECT_EQ(choices.Find(of.queries_max, of.hits_timed), nullptr);
  }
  EXPECT_FALSE(choices.ToKeep().passes.empty());
}

TEST(PassChoicesTest, AFormThatLeavesQueriesUnansweredIsNotChosen) {
  const Chooser chooser(kSentences);
  const PassChoices choices = chooser.Choose([&](const PassPlan& plan, const PassClass&) {
    if (plan.variant->name == "row_scan_kept") return Trial{Trial::End::kUnproven, 1e-9};
    return Trial{Trial::End::kTimed, plan.variant->name == "int8_scan_kept" ? 1e-6 : 1e-3};
  });
  EXPECT_EQ(choices.Find(1, 10)->variant->name, "int8_scan_kept");
  EXPECT_EQ(choices.Find(32, 10), nullptr) << "the rules' pass is the fastest";
}

// Another program's work makes times longer between the first trial of a class and its last.
TEST(PassChoicesTest, OnASharedCardTheRulesDecide) {
  const Chooser chooser(kSentences);
  unsigned trials = 0;
  const PassChoices choices = chooser.Choose([&](const PassPlan&, const PassClass&) {
    return Trial{Trial::End::kTimed, 1e-4 * (1 + trials++)};
  });
  EXPECT_EQ(choices.ToKeep(), GpuChoices());
  EXPECT_LT(trials, 12U) << "the first class ends it";
}

TEST(PassChoicesTest, WhatWasMeasuredWhenTheTimeIsOverStays) {
  const Chooser chooser(kSentences);
  for (unsigned time_for = 1; time_for < 200; time_for += 13) {
    unsigned trials = 0;
    const auto time = [&](const PassPlan&, const PassClass&) {
      return Trial{++trials > time_for ? Trial::End::kStopped : Trial::End::kTimed, 1e-4};
    };
    PassChoices choices = chooser.Choose(time);
    EXPECT_LE(trials, time_for + 1) << "no trial follows the one that was stopped";
    const std::size_t measured = choices.ToKeep().passes.size();
    EXPECT_LT(measured, PassClasses().size());
    // The next load measures what is left.
    trials = 0;
    PassChoices kept(choices.ToKeep());
    chooser.Choose(time, kept);
    EXPECT_GE(kept.ToKeep().passes.size(), measured + (time_for > 40 ? 1 : 0));
  }
}

TEST(PassChoicesTest, ListsAreUsedAsLongAsTheyAreFaster) {
  Chooser chooser(kSentences);
  const auto time = [](const PassPlan&, const PassClass&) {
    return Trial{Trial::End::kTimed, 1e-4};
  };
  for (const unsigned share : {32U, 64U, 128U, 256U}) {
    chooser.set_least_list(share);
    EXPECT_EQ(chooser.Choose(time).gather_share(), share);
  }
}

TEST(PassChoicesTest, ABatchHasTheChoiceOfItsClass) {
  PassChoices choices;
  EXPECT_EQ(choices.Find(1, 10), nullptr);
  for (std::size_t i = 0; i < PassClasses().size(); ++i) {
    choices.Set(
        i, {PassChoice{&KernelVariants()[0], FinishForm::kSteps, false, 0, static_cast<double>(i)},
            1, 1});
  }
  const auto class_of = [&](unsigned queries, unsigned hits) {
    return PassClasses()[static_cast<std::size_t>(choices.Find(queries, hits)->tile_factor)];
  };
  EXPECT_EQ(class_of(1, 1).queries_max, 1U);
  EXPECT_EQ(class_of(2, 10).queries_max, 8U);
  EXPECT_EQ(class_of(100, 10).queries_max, 128U);
  EXPECT_EQ(class_of(100'000, 10).queries_max, 1'024U);
  EXPECT_EQ(class_of(1, 32).hits_max, 32U);
  EXPECT_EQ(class_of(1, 33).hits_max, 128U);
  EXPECT_EQ(class_of(33, 129).hits_timed, 1'000U);
}

TEST(PassChoicesTest, WhatAnotherReleaseKeptIsLeftOutWhereItIsUnknown) {
  GpuChoices kept;
  kept.passes = {{1, 32, "a_variant_that_is_gone", FinishForm::kOneLaunch, true, 0, 1, 1, 1},
                 {7, 32, "row_scan_ring", FinishForm::kOneLaunch, true, 0, 1, 1, 1},
                 {16, 32, "row_scan_ring", FinishForm::kOneLaunch, true, 3, 1, 1, 1},
                 {32, 32, "gemm_topk_fp16", FinishForm::kOneLaunch, true, 0, 0.3, 1, 1},
                 {8, 32, "row_scan_ring", FinishForm::kOneLaunch, true, 8, 1, 1, 2},
                 {64, 32, "", FinishForm::kSteps, false, 0, 1, 1, 1},
                 {128, 32, "gemm_topk_fp16", FinishForm::kSteps, false, 0, 4, 1, 2}};
  kept.gather_share = 64;
  kept.sufficient_batch = 256;
  const PassChoices choices(kept);
  EXPECT_EQ(choices.Find(1, 10), nullptr);
  EXPECT_EQ(choices.Find(64, 10), nullptr) << "by the rules";
  EXPECT_EQ(choices.Find(8, 10)->variant->name, "row_scan_ring");
  const GpuChoices again = choices.ToKeep();
  ASSERT_EQ(again.passes.size(), 3U);
  EXPECT_EQ(PassChoices(again).ToKeep(), again);
  EXPECT_EQ(again.gather_share, 64U);
  EXPECT_EQ(again.sufficient_batch, 256U);
}

constexpr const char* kCard = "Emulated CUDA device";

class Store final : public GpuChoiceStore {
 public:
  GpuChoices Read(const GpuSegmentKey& key) override {
    ++reads;
    return key == known ? choices : GpuChoices();
  }
  void Write(const GpuSegmentKey& key, const GpuChoices& now) override {
    ++writes;
    known = key;
    choices = now;
  }

  GpuSegmentKey known;
  GpuChoices choices;
  unsigned reads = 0, writes = 0;
};

// A millisecond passes whenever somebody looks.
class BusyClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(std::chrono::milliseconds(++milliseconds_)); }
  std::chrono::system_clock::time_point WallNow() const override { return {}; }
  int milliseconds() const { return milliseconds_; }

 private:
  mutable std::atomic<int> milliseconds_{0};
};

class LoadTest : public ::testing::Test {
 protected:
  // An H200 with 12 multiprocessors: more would be emulated slowly, and with fewer the scans that
  // keep scores have no gate for ten hits.
  static constexpr tests::EmulatedCard kLoadedOn{"H200", 90, std::size_t{227} * 1'024, 12};

  void Open(std::chrono::milliseconds choice_time, const Clock* clock = nullptr) {
    GpuOptions options = tests::EmulatedOptions();
    options.tuning.canonical_rows_max = 0;
    options.choice_time = choice_time;
    options.choice_store = &store_;
    if (clock != nullptr) options.clock = clock;
    gpu_.reset();
    tests::ResetEmulatedGpu(kLoadedOn, 1);
    auto opened = tests::OpenEmulatedGpu(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    gpu_ = *std::move(opened);
  }
  void TearDown() override { EXPECT_EQ(emulated_cuda::TakeReport(), ""); }

  std::shared_ptr<const SegmentIndex> Load() {
    auto index = gpu_->MakeResident(tests::MakeSegment(rows_));
    EXPECT_TRUE(index.ok()) << index.status();
    return *std::move(index);
  }

  // The same bits as the plain scan for batches of many sizes.
  void ExpectAnswers(const SegmentIndex& index) {
    const auto scan = cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), 1);
    const auto reference = *scan->MakeResident(tests::MakeSegment(rows_));
    for (const std::uint32_t k : {3U, 100U}) {
      for (const std::size_t batch : {1U, 20U, 96U}) {
        const auto specs = tests::Specs(batch, k);
        const SearchBatch asked{queries_->view().Slice(0, batch), specs};
        SearchResult expected, result;
        ASSERT_TRUE(reference->Search(asked, expected).ok());
        ASSERT_TRUE(index.Search(asked, result).ok());
        for (std::size_t i = 0; i < batch; ++i) {
          EXPECT_TRUE(std::ranges::equal(result.Hits(i), expected.Hits(i)))
              << result.Engine(i) << ", k " << k << ", batch " << batch << ", query " << i;
        }
      }
    }
  }

  SeededRandom random_{7};
  const std::shared_ptr<tests::PaddedRows> rows_ = tests::UnitRows(2'000, 96, random_);
  const std::shared_ptr<tests::PaddedRows> queries_ = tests::UnitRows(96, 96, random_);
  Store store_;
  std::unique_ptr<Backend> gpu_;
};

TEST_F(LoadTest, MeasuresWhatTheStoreDoesNotKnow) {
  BusyClock clock;
  Open(std::chrono::seconds(2), &clock);
  const auto first = Load();
  ASSERT_EQ(store_.writes, 1U);
  EXPECT_EQ(store_.known.card, kCard);
  EXPECT_EQ(store_.known.row_count, 2'048U);
  ASSERT_FALSE(store_.choices.passes.empty());
  for (const GpuPassChoice& pass : store_.choices.passes) {
    EXPECT_GT(pass.seconds, 0);
    EXPECT_LE(pass.seconds, pass.rules_seconds);
  }
  ExpectAnswers(*first);
  // What is known is not measured again.
  const GpuChoices known = store_.choices;
  const auto second = Load();
  EXPECT_GE(store_.choices.passes.size(), known.passes.size());
  EXPECT_TRUE(std::ranges::equal(std::span(store_.choices.passes).first(known.passes.size()),
                                 known.passes));
}

TEST_F(LoadTest, EndsWithinTheTimeAndOneTrial) {
  BusyClock clock;
  const auto time_of_load = [&](std::chrono::milliseconds choice_time) {
    Open(choice_time, &clock);
    const int began = clock.milliseconds();
    Load();
    return clock.milliseconds() - began;
  };
  const int without = time_of_load(std::chrono::milliseconds(0));
  const int with = time_of_load(std::chrono::milliseconds(200));
  EXPECT_GE(with, without + 200);
  EXPECT_LE(with, without + 300);
}

TEST_F(LoadTest, MeasuresNothingWhenTheTimeIsZero) {
  Open(std::chrono::milliseconds(0));
  Load();
  EXPECT_EQ(store_.reads, 1U);
  EXPECT_EQ(store_.writes, 0U);
}

// Every choice that a card may make gives the same answers, and the receipt names the pass.
TEST_F(LoadTest, AnswersAreEqualWhateverIsChosen) {
  Open(std::chrono::milliseconds(0));
  store_.known = {kCard, 2'048, 96, true};
  std::map<std::string, unsigned> engines;
  for (const KernelVariant& variant : KernelVariants()) {
    for (const FinishForm finish : kFinishForms) {
      for (const bool mapped : {false, true}) {
        store_.choices = {};
        for (const PassClass& of : PassClasses()) {
          store_.choices.passes.push_back({of.queries_max, of.hits_max, std::string(variant.name),
                                           finish, mapped, mapped ? 4U : 0U,
                                           finish == FinishForm::kOneLaunch ? 0.5 : 2.0, 1, 2});
        }
        store_.choices.gather_share = 64;
        const auto index = Load();
        ++engines[std::string(index->engine())];
        ExpectAnswers(*index);
      }
    }
  }
  EXPECT_EQ(engines, (std::map<std::string, unsigned>{{"int8-scan-sm90", 6},
                                                      {"int8-scan-kept-sm90", 6},
                                                      {"fp16-scan-sm90", 6},
                                                      {"fp16-scan-registers-sm90", 6},
                                                      {"fp16-scan-kept-sm90", 6},
                                                      {"fp16-gemm-sm90", 6}}));
}

// With an hour to measure, the load ends as soon as a search of another collection waits.
TEST_F(LoadTest, SearchesComeFirst) {
  Open(std::chrono::hours(1));
  store_.known = {kCard, 2'048, 96, true};
  for (const PassClass& of : PassClasses()) {
    store_.choices.passes.push_back(
        {of.queries_max, of.hits_max, "row_scan_ring", FinishForm::kOneLaunch, true, 0, 1, 1, 2});
  }
  store_.choices.gather_share = 64;
  const auto served = Load();
  store_.known = {};  // nothing is known of the next
  std::atomic<bool> loaded{false};
  std::thread searches([&] {
    const auto specs = tests::Specs(1, 3);
    SearchResult result;
    while (!loaded) {
      EXPECT_TRUE(served->Search({queries_->view().Slice(0, 1), specs}, result).ok());
    }
  });
  const auto index = Load();
  loaded = true;
  searches.join();
  // Without the rule it would measure all classes of up to 64 queries, 15 of them.
  EXPECT_LE(store_.known.card.empty() ? 0U : store_.choices.passes.size(), 2U);
  ExpectAnswers(*index);
}

// A device that is lost meanwhile fails the load, as it does before.
TEST_F(LoadTest, ALostDeviceFailsTheLoad) {
  Open(std::chrono::hours(1));
  emulated_cuda::InjectFault(
      {.nth = 3, .error = cudaErrorIllegalAddress, .name = "cudaGraphLaunch", .sticky = true});
  const auto index = gpu_->MakeResident(tests::MakeSegment(rows_));
  EXPECT_EQ(index.status().code(), absl::StatusCode::kUnavailable) << index.status();
  emulated_cuda::TakeReport();
}

}  // namespace
}  // namespace simile::backend::cuda

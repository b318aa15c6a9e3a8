#include "backend/cuda/pass_plan.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "backend/cuda/planned_cards.h"
#include "backend/cuda/workspace.h"
#include "certificate/seeded_random.h"
#include "simile/limits.h"

namespace simile::backend::cuda {
namespace {

using tests::SeededRandom;

PassDemand Demand(unsigned queries, unsigned k) {
  PassDemand demand;
  demand.queries = queries;
  demand.hits_max = k;
  demand.reach_max = k;
  return demand;
}

std::optional<PassPlan> PlanOnH200(const SegmentSize& segment, const PassDemand& demand) {
  return PlanPass(H200(), GpuTuning{}, WorkspaceSize{}, segment, demand);
}

CardTraits Card(int capability, std::size_t shared_kib) {
  CardTraits card = H200();
  card.capability = card.code_capability = capability;
  card.shared_bytes_max = shared_kib * 1024;
  return card;
}

std::string_view VariantOn(const CardTraits& card, const SegmentSize& segment,
                           const PassDemand& demand) {
  const auto plan = PlanPass(card, GpuTuning{}, WorkspaceSize{}, segment, demand);
  return plan ? plan->variant->name : "none";
}

TEST(KernelVariantsTest, HaveNamesOfTheirOwnAndFunctionsForScansOnly) {
  std::set<std::string_view> names;
  for (const KernelVariant& variant : KernelVariants()) {
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
    const bool scans = IsScan(variant.strategy);
    EXPECT_EQ(variant.shape != nullptr, scans) << variant.name;
    EXPECT_EQ(variant.prepare != nullptr, scans) << variant.name;
    EXPECT_EQ(variant.launch != nullptr, scans) << variant.name;
  }
}

TEST(KernelVariantsTest, AreChosenByCardSegmentAndBatch) {
  EXPECT_EQ(VariantOn(H200(), kMillion, Demand(64, 10)), "row_scan_ring");
  EXPECT_EQ(VariantOn(H200(), kMillion, Demand(65, 10)), "gemm_topk_fp16");
  EXPECT_EQ(VariantOn(Card(75, 64), kSentences, Demand(1, 10)), "row_scan_registers");
  // 16 queries of 768 dimensions take 24 KiB; 32 leave an A5000 no ring, 64 do not fit.
  EXPECT_EQ(VariantOn(Card(86, 99), kMillion, Demand(16, 10)), "row_scan_ring");
  EXPECT_EQ(VariantOn(Card(86, 99), kMillion, Demand(32, 10)), "row_scan_registers");
  EXPECT_EQ(VariantOn(Card(86, 99), kMillion, Demand(64, 10)), "gemm_topk_fp16");
  EXPECT_EQ(VariantOn(Card(86, 99), {1'000'000, 4'128}, Demand(1, 10)), "none");
  EXPECT_EQ(VariantOn(H200(), kMillion, Demand(1, kHitsMax + 1)), "none");
}

TEST(KernelVariantsTest, ReadInt8RowsWhereTheyAre) {
  PassDemand demand = Demand(64, 100);
  demand.int8_rows = true;
  demand.int8_margin = 0.01;
  EXPECT_EQ(VariantOn(H200(), kMillion, demand), "int8_scan");
  EXPECT_EQ(VariantOn(Card(75, 64), kSentences, demand), "row_scan_registers");
  // 64 queries of 768 dimensions take 96 KiB in two planes, as in fp16.
  EXPECT_EQ(VariantOn(Card(86, 99), kMillion, demand), "gemm_topk_fp16");
  demand.queries = 65;
  EXPECT_EQ(VariantOn(H200(), kMillion, demand), "gemm_topk_fp16");
  demand.queries = 1;
  demand.hits_max = demand.reach_max = 1'000;
  EXPECT_EQ(VariantOn(H200(), kMillion, demand), "int8_scan");
}

// Simulated: 49 hits a query at k 10, 107 at most; a million isotropic rows have 1,824 at k 100,
// and 3,626 at most.
TEST(PassPlanTest, HasTheCapacityForTheHitsOfTheInt8Scan) {
  PassDemand demand = Demand(32, 10);
  demand.int8_rows = true;
  demand.int8_margin = 1.25 * 0.0075;
  const auto sentences = PlanOnH200(kSentences, demand);
  EXPECT_GE(sentences->capacity, 250U);
  EXPECT_LE(sentences->capacity, 1'000U);
  demand.hits_max = demand.reach_max = 100;
  GpuTuning one_gate;
  one_gate.second_gate_share = 0;
  const auto million = PlanPass(H200(), one_gate, WorkspaceSize(), kMillion, demand);
  EXPECT_GE(million->capacity, 3'700U);
  EXPECT_LE(million->capacity, 16'000U);
}

// Counted with a second gate over a million isotropic rows: of eight queries one had 1,997 hits at
// k 100 and one 7,344 at k 1,000.
TEST(PassPlanTest, HasTheCapacityForTheHitsOfTheInt8ScanBehindASecondGate) {
  PassDemand demand = Demand(64, 100);
  demand.int8_rows = true;
  demand.int8_margin = 1.25 * 0.0075;
  const auto hundred = PlanOnH200(kMillion, demand);
  ASSERT_GT(hundred->second_tiles, 0U);
  EXPECT_GE(hundred->capacity, 2'500U);
  demand.hits_max = demand.reach_max = 1'000;
  const auto thousand = PlanOnH200(kMillion, demand);
  ASSERT_GT(thousand->second_tiles, 0U);
  EXPECT_GE(thousand->capacity, 8'500U);
}

TEST(PassPlanTest, SetsASecondGateWhereItSavesMoreThanItTakes) {
  const auto many = PlanOnH200(kMillion, Demand(64, 100));
  EXPECT_EQ(many->second_tiles, 1'000'000U / 32 / 8);
  EXPECT_NEAR(many->second_share, 1.0 / 8, 1e-3);
  EXPECT_GT(many->FindRanks(100).second, many->FindRanks(100).first);
  GpuTuning never;
  never.second_gate_share = 0;
  const auto without = PlanPass(H200(), never, WorkspaceSize(), kMillion, Demand(64, 100));
  EXPECT_EQ(without->second_tiles, 0U);
  EXPECT_EQ(without->FindRanks(100).second, 0U);
  EXPECT_GT(without->capacity, many->capacity);
  PassDemand int8 = Demand(64, 100);
  int8.int8_rows = true;
  int8.int8_margin = 1.25 * 0.0075;
  EXPECT_GT(PlanOnH200(kMillion, int8)->second_tiles, 0U);
  int8.queries = 32;
  EXPECT_EQ(PlanOnH200(kMillion, int8)->second_tiles, 0U);
  for (const unsigned few : {1U, 32U}) {
    EXPECT_EQ(PlanOnH200(kMillion, Demand(few, 100))->second_tiles, 0U) << few;
  }
  EXPECT_EQ(PlanOnH200(kSentences, Demand(64, 100))->second_tiles, 0U) << "fewer rows than groups";
}

TEST(PassPlanTest, ScansForSmallBatchesAndMultipliesForLargeOnes) {
  EXPECT_EQ(PlanOnH200(kMillion, Demand(1, 10))->strategy(), PassStrategy::kRowScan);
  EXPECT_EQ(PlanOnH200(kMillion, Demand(64, 100))->strategy(), PassStrategy::kRowScan);
  EXPECT_EQ(PlanOnH200(kMillion, Demand(65, 10))->strategy(), PassStrategy::kGemm);
  EXPECT_EQ(PlanOnH200(kMillion, Demand(1'000, 10))->strategy(), PassStrategy::kGemm);
}

// As measured on an H200.
TEST(PassPlanTest, TakesTilesOfWholeWavesWhoseScoresFitTheL2) {
  const auto tile_rows = [](const CardTraits& card, const SegmentSize& segment, unsigned queries) {
    return PlanPass(card, GpuTuning{}, WorkspaceSize{}, segment, Demand(queries, 10))->tile_rows;
  };
  constexpr unsigned kWave = 132 * 128;
  EXPECT_EQ(tile_rows(H200(), kMillion, 100), 4 * kWave);
  EXPECT_EQ(tile_rows(H200(), kSentences, 100), 2 * kWave) << "two tiles";
  EXPECT_EQ(tile_rows(H200(), kMillion, 1'000), kWave / 2) << "two waves of four columns";
  EXPECT_EQ(tile_rows(H200(), kSentences, 1'000), kWave / 2);
  for (const unsigned queries : {129U, 144U, 160U, 176U, 192U, 208U, 256U}) {
    EXPECT_EQ(tile_rows(H200(), kMillion, queries) % kWave, 0U) << queries;
  }
  EXPECT_EQ(tile_rows(H200(), {35'000, 384}, 100), kWave) << "no tile with hardly a second";
  CardTraits small = Card(75, 64);
  small.multiprocessors = 40;
  small.l2_bytes = std::size_t{4} << 20;
  EXPECT_EQ(tile_rows(small, kMillion, 100), 40 * 128U);
  EXPECT_EQ(tile_rows(small, kMillion, 1'000), 40 / 3 * 128U)
      << "of 768 queries; the L2 holds less";
}

TEST(PassPlanTest, TakesSeveralScansWithoutMatrixProducts) {
  WorkspaceSize without;
  without.tile_bytes = without.blas_bytes = 0;
  const auto slots_on = [&](const CardTraits& card, const PassDemand& demand) {
    const auto plan = PlanPass(card, GpuTuning{}, without, kMillion, demand);
    if (!plan) return 0U;
    EXPECT_EQ(plan->strategy(), PassStrategy::kRowScan);
    return plan->slots;
  };
  EXPECT_EQ(slots_on(H200(), Demand(100, 10)), 64U);
  EXPECT_EQ(slots_on(H200(), Demand(65, 10)), 64U);
  EXPECT_EQ(slots_on(H200(), Demand(20, 10)), 32U);
  EXPECT_EQ(slots_on(Card(86, 99), Demand(100, 10)), 32U) << "64 queries do not fit its blocks";
  EXPECT_EQ(slots_on(H200(), Demand(100, 500'000)), 0U);
}

TEST(PassPlanTest, MapsTheBlocksOfFewQueriesWithShortAnswers) {
  const auto is_mapped = [](unsigned mapped_queries_max, const PassDemand& demand) {
    GpuTuning tuning;
    tuning.mapped_queries_max = mapped_queries_max;
    return PlanPass(H200(), tuning, WorkspaceSize{}, kMillion, demand)->is_mapped;
  };
  EXPECT_TRUE(is_mapped(1, Demand(1, 10)));
  EXPECT_FALSE(is_mapped(1, Demand(2, 10)));
  EXPECT_FALSE(is_mapped(0, Demand(1, 10)));
  EXPECT_TRUE(is_mapped(64, Demand(64, 128)));
  EXPECT_FALSE(is_mapped(64, Demand(1, 129))) << "a long answer";
  EXPECT_FALSE(is_mapped(1'000, Demand(65, 10))) << "by matrix products";
}

TEST(PassPlanTest, FinishesShortAnswersInOneLaunch) {
  for (const unsigned queries : {1U, 100U}) {
    EXPECT_EQ(PlanOnH200(kSentences, Demand(queries, 32))->finish, FinishForm::kOneLaunch);
    EXPECT_EQ(PlanOnH200(kSentences, Demand(queries, 33))->finish, FinishForm::kSteps);
  }
}

TEST(PassPlanTest, FinishesInRowOrderWhereItIsChosenAndQueriesReadTheSameRows) {
  const auto finish = [](unsigned queries, unsigned hits, FinishForm chosen) {
    PassDemand demand = Demand(queries, hits);
    const PassChoice choice{PlanOnH200(kSentences, demand)->variant, chosen, false, 0, 1};
    demand.choice = &choice;
    return PlanOnH200(kSentences, demand)->finish;
  };
  constexpr auto kRowOrder = FinishForm::kStepsInRowOrder;
  EXPECT_EQ(finish(1'000, 1'000, kRowOrder), kRowOrder);
  EXPECT_EQ(finish(64, 1'000, kRowOrder), kRowOrder);
  EXPECT_EQ(finish(1'000, 1'000, FinishForm::kOneLaunch), FinishForm::kSteps);
  EXPECT_EQ(finish(1'000, 10, FinishForm::kSteps), FinishForm::kSteps);
  // Fewer rows are rescored than there are: the rules' form.
  EXPECT_EQ(finish(1, 1'000, kRowOrder), FinishForm::kSteps);
  EXPECT_EQ(finish(1'000, 10, kRowOrder), FinishForm::kOneLaunch);
}

TEST(PassPlanTest, MultipliesWhenTheScansSampleIsTooSmallForTheAnswer) {
  EXPECT_EQ(PlanOnH200(kSentences, Demand(1, 1'000))->strategy(), PassStrategy::kRowScan);
  EXPECT_EQ(PlanOnH200(kSentences, Demand(1, 10'000))->strategy(), PassStrategy::kGemm);
}

TEST(PassPlanTest, FindsNoPlanWhenTheAnswerIsMostOfTheRows) {
  EXPECT_FALSE(PlanOnH200({5'000, 384}, Demand(1, 5'000)).has_value());
}

TEST(PassPlanTest, LetsFewHitsThrough) {
  // A random order of 62,423 rows lets 38 hits through at k = 10, 192 at k = 100.
  EXPECT_LT(PlanOnH200(kSentences, Demand(64, 10))->capacity, 400U);
  EXPECT_LT(PlanOnH200(kSentences, Demand(64, 100))->capacity, 1'000U);
}

TEST(PassPlanTest, NeverOverrunsTheWorkspace) {
  const WorkspaceSize workspace;
  SeededRandom random(7);
  for (int i = 0; i < 20'000; ++i) {
    const SegmentSize segment{
        static_cast<unsigned>(random.Between(1, random.OneIn(2) ? 5'000 : 20'000'000)),
        static_cast<unsigned>(kLaneCount * random.Between(1, 128))};
    PassDemand demand = Demand(static_cast<unsigned>(random.Between(1, 1'024)),
                               static_cast<unsigned>(random.Between(1, 10'000)));
    demand.hits_max = std::min(demand.hits_max, segment.row_count);
    demand.reach_max = demand.hits_max + static_cast<unsigned>(random.Below(2'048));
    demand.growth = static_cast<unsigned>(random.Below(7));
    const auto plan = PlanOnH200(segment, demand);
    if (!plan) continue;
    ASSERT_GE(plan->slots, 1U);
    ASSERT_LE(plan->slots, workspace.queries_max);
    ASSERT_LE(std::size_t{plan->slots} * plan->capacity, workspace.hits_max);
    ASSERT_LE(std::size_t{plan->slots} * plan->best_stride, workspace.answers_max);
    ASSERT_GE(plan->best_stride, demand.hits_max);
    ASSERT_GE(plan->FindRanks(demand.reach_max).first, 1U);
    if (plan->strategy() == PassStrategy::kRowScan) {
      ASSERT_GE(plan->shape.queries, plan->slots);
      ASSERT_LE(plan->sample_groups, kernels::kScanGroupsMax);
      ASSERT_LE(plan->sample_groups, (segment.row_count + 31) / 32);
    } else {
      ASSERT_LE(std::size_t{plan->tile_rows} * plan->slots * sizeof(__half), workspace.tile_bytes);
      ASSERT_LE(plan->sample_rows, std::min(plan->tile_rows, segment.row_count));
      ASSERT_LE(plan->sample_rows, kernels::kSampleKeysMax * plan->sample_group);
    }
  }
}

// Over random orders of rows, the `reach` best rows reach the rank-th best of the sample.
TEST(PassPlanTest, RanksSoThatTheReachBestRowsPassTheGate) {
  SeededRandom random(3);
  constexpr unsigned kRows = 4'096, kReach = 20;
  const auto plan = PlanOnH200({kRows, 32}, Demand(1, kReach));
  ASSERT_TRUE(plan.has_value());
  const auto sampled = static_cast<std::size_t>(plan->sample_share * kRows);
  const unsigned rank = plan->FindRanks(kReach).first;
  for (int trial = 0; trial < 20'000; ++trial) {
    // Rows in the sample that are better than the last one wanted: `rank` of them would lift the
    // gate above it.
    std::size_t in_sample = 0;
    for (unsigned i = 0; i + 1 < kReach; ++i) {
      in_sample += random.Below(kRows - i) < sampled - in_sample ? 1U : 0U;
    }
    ASSERT_LT(in_sample, rank) << "trial " << trial;
  }
}

TEST(ExpectedHitsTest, IsTheShareOfTheSample) {
  EXPECT_NEAR(ExpectedHits(10, 512, 32, 62'423), 38, 1);
  EXPECT_NEAR(ExpectedHits(48, 512, 32, 62'423), 192, 2);
  EXPECT_EQ(ExpectedHits(512, 512, 32, 62'423), 62'423);
}

TEST(SizesToTryTest, ShrinksTheTileThenTheBatch) {
  const std::vector<WorkspaceSize> sizes = SizesToTry(WorkspaceSize{});
  ASSERT_GT(sizes.size(), 2U);
  EXPECT_EQ(sizes[0].tile_bytes, WorkspaceSize{}.tile_bytes);
  EXPECT_EQ(sizes[1].tile_bytes, WorkspaceSize{}.tile_bytes / 2);
  EXPECT_EQ(sizes[1].queries_max, WorkspaceSize{}.queries_max);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    EXPECT_LT(WorkspaceBytes(sizes[i]), WorkspaceBytes(sizes[i - 1]));
  }
  EXPECT_LT(sizes.back().queries_max, 32U);
}

}  // namespace
}  // namespace simile::backend::cuda

// Each road of the GPU engine on the emulated device, with more rows than the conformance cases
// have: gates that turn rows away, samples that are a part of the rows, tiles in the midst of which
// others begin. The plain scan is the judge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/scan_backend.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/resident_rows.h"
#include "backend/segments.h"
#include "certificate/canonical_score.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::backend {
namespace {

using testing::CardOf;
using testing::EmulatedOptions;
using testing::ForcedRoad;
using testing::PaddedRows;
using testing::SeededRandom;

// Everything that a test of one segment needs.
class Bench {
 public:
  Bench(const GpuOptions& options, const std::shared_ptr<PaddedRows>& rows, Metric metric) {
    auto opened = testing::OpenEmulatedGpu(options);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    gpu_ = *std::move(opened);
    scan_ = cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), 1);
    SegmentRows segment = testing::SegmentOf(rows);
    segment.metric = metric;
    auto resident = gpu_->MakeResident(segment);
    EXPECT_TRUE(resident.ok()) << resident.status().ToString();
    on_gpu_ = *resident;
    on_cpu_ = *scan_->MakeResident(segment);
  }

  // Expects the scan's answers and returns what the GPU said.
  const SearchResult& Expect(const SearchBatch& batch, const std::string& what) {
    const absl::Status status = on_gpu_->Search(batch, result_);
    EXPECT_TRUE(status.ok()) << what << ": " << status.ToString();
    SearchResult expected;
    EXPECT_TRUE(on_cpu_->Search(batch, expected).ok());
    testing::ExpectSameAnswers(result_, expected, what);
    EXPECT_EQ(emulated_cuda::TakeReport(), "") << what;
    return result_;
  }

 private:
  std::unique_ptr<Backend> gpu_;
  std::unique_ptr<Backend> scan_;
  std::shared_ptr<const SegmentIndex> on_gpu_;
  std::shared_ptr<const SegmentIndex> on_cpu_;
  SearchResult result_;
};

std::uint64_t Rescans(const SearchResult& result) {
  std::uint64_t rescans = 0;
  for (std::size_t query = 0; query < result.batch(); ++query)
    rescans += result.Cost(query).rescans;
  return rescans;
}

// Most queries are answered by the road, and hardly any had to be answered again.
void ExpectRoad(const SearchResult& result, const std::string& road) {
  for (std::size_t query = 0; query < result.batch(); ++query) {
    if (result.Cost(query).rescans == 0) {
      EXPECT_TRUE(std::string(result.Engine(query)).starts_with(road)) << result.Engine(query);
    }
  }
  EXPECT_LE(Rescans(result) * 50, result.batch());
}

struct RoadCase {
  const char* name;
  ForcedRoad road;
  const char* engine;
  std::size_t row_count;
  std::size_t dim;
  std::size_t batch;
  std::uint32_t k;
};

class GpuRoadTest : public ::testing::TestWithParam<std::tuple<RoadCase, std::size_t>> {};

TEST_P(GpuRoadTest, AnswersAsTheScanDoes) {
  const auto& [road, card] = GetParam();
  testing::ResetEmulatedGpu(CardOf(card), 100 + card);
  SeededRandom random(road.row_count + road.k);
  Bench bench(EmulatedOptions(road.road), testing::UnitRows(road.row_count, road.dim, random),
              Metric::kCosine);
  const auto queries = testing::UnitRows(road.batch, road.dim, random);
  const std::vector<QuerySpec> specs = testing::Specs(road.batch, road.k);
  ExpectRoad(bench.Expect({queries->view(), specs}, road.name), road.engine);
}

constexpr RoadCase kRoadCases[] = {
    {"scan_1", ForcedRoad::kRowScan, "fp16-scan", 12'000, 40, 1, 10},
    {"scan_16_wide", ForcedRoad::kRowScan, "fp16-scan", 2'500, 400, 16, 10},
    {"scan_17", ForcedRoad::kRowScan, "fp16-scan", 9'001, 64, 17, 100},
    {"scan_33", ForcedRoad::kRowScan, "fp16-scan", 6'007, 33, 33, 10},
    {"scan_64", ForcedRoad::kRowScan, "fp16-scan", 5'023, 96, 64, 1},
    {"scan_long_answer", ForcedRoad::kRowScan, "fp16-scan", 30'000, 32, 3, 300},
    {"gemm_1", ForcedRoad::kGemm, "fp16-gemm", 5'000, 40, 1, 10},
    {"gemm_70", ForcedRoad::kGemm, "fp16-gemm", 6'001, 64, 70, 10},
    {"gemm_long_answer", ForcedRoad::kGemm, "fp16-gemm", 9'000, 32, 9, 900},
    {"gemm_200", ForcedRoad::kGemm, "fp16-gemm", 3'000, 32, 200, 20},
    {"canonical_9", ForcedRoad::kCanonical, "scan", 12'000, 32, 9, 50},
    {"as_served_1", ForcedRoad::kNone, "fp16-scan", 9'000, 64, 1, 10},
    {"as_served_90", ForcedRoad::kNone, "fp16-gemm", 6'000, 64, 90, 10},
};

INSTANTIATE_TEST_SUITE_P(Roads, GpuRoadTest,
                         ::testing::Combine(::testing::ValuesIn(kRoadCases),
                                            ::testing::Range<std::size_t>(0, 4)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_on_" +
                                  CardOf(std::get<1>(test.param)).name;
                         });

class GpuFilterTest : public ::testing::TestWithParam<ForcedRoad> {};

// Every query its own mask, exclusions and k: more masks than there is room for, lists that are
// too long for a list.
TEST_P(GpuFilterTest, AnswersMixedQueriesAsTheScanDoes) {
  constexpr std::size_t kRows = 7'000, kDim = 32, kBatch = 90;
  testing::ResetEmulatedGpu(CardOf(0), 7);
  SeededRandom random(11);
  Bench bench(EmulatedOptions(GetParam()), testing::UnitRows(kRows, kDim, random), Metric::kCosine);
  const auto queries = testing::UnitRows(kBatch, kDim, random);
  std::vector<RowMask> masks;
  std::vector<std::vector<Row>> excluded(kBatch);
  std::vector<QuerySpec> specs = testing::Specs(kBatch, 10);
  masks.reserve(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) {
    const std::size_t one_in = std::vector<std::size_t>{2, 5, 40, 1'000, 0}[i % 5];
    masks.push_back(testing::MaskOf(kRows, one_in, random));
    if (i % 3 != 0) specs[i].mask = &masks[i];
    const std::size_t left_out = i % 10 == 0 ? 3'000 : 20 * (i % 4);
    for (Row row = 0; row < kRows && excluded[i].size() < left_out; ++row) {
      if (random.OneIn(2)) excluded[i].push_back(row);
    }
    specs[i].excluded_rows = excluded[i];
    specs[i].k = static_cast<std::uint32_t>(random.Between(1, 60));
  }
  const SearchBatch batch{queries->view(), specs};
  bench.Expect(batch, "masks are new");
  bench.Expect(batch, "masks are known");
}

INSTANTIATE_TEST_SUITE_P(Roads, GpuFilterTest,
                         ::testing::Values(ForcedRoad::kNone, ForcedRoad::kRowScan,
                                           ForcedRoad::kGemm, ForcedRoad::kGather,
                                           ForcedRoad::kCanonical));

TEST(GpuEngineTest, AnswersForDotProductsOfUnequalLengths) {
  constexpr std::size_t kRows = 6'000, kDim = 48;
  for (const ForcedRoad road : {ForcedRoad::kRowScan, ForcedRoad::kGemm}) {
    testing::ResetEmulatedGpu(CardOf(0), 3);
    SeededRandom random(5);
    const auto rows = testing::UnitRows(kRows, kDim, random);
    for (std::size_t row = 0; row < kRows; ++row) {
      testing::ScaleTo((*rows)[row], 1 + 9 * static_cast<double>(random.Below(1'000)) / 1'000);
    }
    Bench bench(EmulatedOptions(road), rows, Metric::kDot);
    const auto queries = testing::UnitRows(8, kDim, random);
    testing::ScaleTo((*queries)[3], 0x1p40);
    testing::ScaleTo((*queries)[4], 0x1p-40);
    const std::vector<QuerySpec> specs = testing::Specs(8, 10);
    const SearchResult& result = bench.Expect({queries->view(), specs}, "dot");
    EXPECT_EQ(Rescans(result), 0U);
  }
}

// Rows that lie denser than the bound: every one of thousands may be among the best.
TEST(GpuEngineTest, MakesMoreRoomWhereHitsOverflow) {
  constexpr std::size_t kRows = 9'000, kDim = 32;
  testing::ResetEmulatedGpu(CardOf(0), 9);
  SeededRandom random(13);
  const auto rows = testing::UnitRows(kRows, kDim, random);
  for (std::size_t row = 1; row < kRows; row += 2) {  // half of them nearly the same
    for (std::size_t i = 0; i < kDim; ++i) {
      (*rows)[row][i] = (*rows)[0][i] * (1 + random.Signed() * 0x1p-12F);
    }
    testing::ScaleTo((*rows)[row], 1);
  }
  Bench bench(EmulatedOptions(ForcedRoad::kRowScan), rows, Metric::kCosine);
  const PaddedRows& all = *rows;
  PaddedRows query(1, kDim);
  std::ranges::copy(all[0], query[0].begin());
  const std::vector<QuerySpec> specs = testing::Specs(1, 10);
  EXPECT_EQ(Rescans(bench.Expect({query.view(), specs}, "first")), 1U);
  for (int i = 0; i < 6; ++i) bench.Expect({query.view(), specs}, "growing");
  EXPECT_EQ(Rescans(bench.Expect({query.view(), specs}, "grown")), 0U);
}

// A row whose score with the first unit vector is this.
void SetScore(std::span<float> row, float score, SeededRandom& random) {
  for (float& value : row) value = random.Signed();
  row[0] = 0;
  testing::ScaleTo(row, std::sqrt(1 - static_cast<double>(score) * score));
  row[0] = score;
}

// Rows in an order that deceives the sample: as many of the best as the gate's rank lie in it, one
// in a group, and the rest far below, but for some near ones, one in each of the next groups.
// Expects the right answer and returns how often it took all canonical scores.
std::uint64_t RescansOfDeceived(ForcedRoad road, unsigned near_count, float near_below) {
  constexpr unsigned kRows = 80'000, kDim = 32, kWanted = 100, kGroup = 32;
  testing::ResetEmulatedGpu(CardOf(0), 4);
  const GpuOptions options = EmulatedOptions(road);
  cuda::CardTraits card;
  card.multiprocessors = static_cast<unsigned>(CardOf(0).multiprocessors);
  card.shared_bytes_max = CardOf(0).shared_bytes_max;
  card.capability = CardOf(0).capability;
  cuda::PassDemand demand;
  demand.queries = 1;
  demand.hits_max = demand.reach_max = kWanted;
  const auto plan = cuda::PlanPass(card, options.tuning, options.workspace, {kRows, kDim}, demand);
  EXPECT_TRUE(plan.has_value());
  const unsigned rank = plan->RankOf(kWanted);
  EXPECT_LT(rank, kWanted) << "else the sample cannot deceive";

  SeededRandom random(8);
  const std::vector<unsigned> row_of = cuda::ShuffledRows(kRows);
  const auto rows = std::make_shared<PaddedRows>(kRows, kDim);
  for (unsigned position = 0; position < kRows; ++position) {
    const unsigned group = position / kGroup;
    float score = 0.2F;
    if (position % kGroup == 0 && group < rank) score = 0.9F;
    if (position % kGroup == 0 && group >= rank && group < rank + near_count) {
      score = 0.9F - near_below;
    }
    SetScore((*rows)[row_of[position]], score, random);
  }
  Bench bench(options, rows, Metric::kCosine);
  PaddedRows query(1, kDim);
  query[0][0] = 1;
  const std::vector<QuerySpec> specs = testing::Specs(1, kWanted);
  return Rescans(bench.Expect({query.view(), specs}, "deceived"));
}

TEST(GpuEngineTest, AnswersAgainWhereTheGateWasTooHigh) {
  EXPECT_EQ(RescansOfDeceived(ForcedRoad::kRowScan, 0, 0), 1U);
  EXPECT_EQ(RescansOfDeceived(ForcedRoad::kGemm, 0, 0), 1U);
}

// The gate lies twice the bound below the sample's, and the last hit less than once above it.
TEST(GpuEngineTest, AnswersAgainWhereTheLastHitDoesNotClearTheGate) {
  EXPECT_EQ(RescansOfDeceived(ForcedRoad::kGemm, 200, 2e-3F), 1U);
  // The scan's is found by halving: here 0.9 - 0.7 / 2^9.
  EXPECT_EQ(RescansOfDeceived(ForcedRoad::kRowScan, 200, 2.4e-3F), 1U);
}

// Blocks that wait for each other, and none for less than all of another's threads.
TEST(GpuEngineTest, ScansRightInEveryOrder) {
  constexpr std::size_t kRows = 4'000, kDim = 64, kQueries = 20;
  SeededRandom random(29);
  const auto rows = testing::UnitRows(kRows, kDim, random);
  const auto queries = testing::UnitRows(kQueries, kDim, random);
  const std::vector<QuerySpec> specs = testing::Specs(kQueries, 10);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    testing::ResetEmulatedGpu(CardOf(seed), seed);
    Bench bench(EmulatedOptions(ForcedRoad::kRowScan), rows, Metric::kCosine);
    const std::string what = "device seed " + std::to_string(seed);
    EXPECT_EQ(Rescans(bench.Expect({queries->view(), specs}, what)), 0U) << what;
  }
}

// What lies behind the last row of a tile or of a load scores 0 or anything: more than any row
// here, of which each of the best is a group's only good one.
TEST(GpuEngineTest, SamplesOnlyRowsThatThereAre) {
  constexpr unsigned kRows = 510, kDim = 32, kWanted = 10, kGroup = 32;
  const std::vector<unsigned> row_of = cuda::ShuffledRows(kRows);
  for (const ForcedRoad road : {ForcedRoad::kRowScan, ForcedRoad::kGemm}) {
    testing::ResetEmulatedGpu(CardOf(0), 4);  // whose poison is greater than any score
    SeededRandom random(19);
    const auto rows = std::make_shared<PaddedRows>(kRows, kDim);
    for (unsigned position = 0; position < kRows; ++position) {
      const unsigned group = position / kGroup;
      const bool best = position % kGroup == 0 && group < kWanted;
      SetScore((*rows)[row_of[position]], best ? -0.3F - 0.01F * static_cast<float>(group) : -0.9F,
               random);
    }
    Bench bench(EmulatedOptions(road), rows, Metric::kCosine);
    PaddedRows query(1, kDim);
    query[0][0] = 1;
    const std::vector<QuerySpec> specs = testing::Specs(1, kWanted);
    const SearchResult& result = bench.Expect({query.view(), specs}, "negative scores");
    EXPECT_TRUE(std::string(result.Engine(0)).starts_with("fp16")) << result.Engine(0);
  }
}

TEST(GpuEngineTest, SamplesOnlyRowsThatPass) {
  constexpr std::size_t kRows = 9'000, kDim = 32, kQueries = 4;
  for (const ForcedRoad road : {ForcedRoad::kRowScan, ForcedRoad::kGemm}) {
    testing::ResetEmulatedGpu(CardOf(0), 6);
    SeededRandom random(23);
    Bench bench(EmulatedOptions(road), testing::UnitRows(kRows, kDim, random), Metric::kCosine);
    const auto queries = testing::UnitRows(kQueries, kDim, random);
    const RowMask mask = testing::MaskOf(kRows, 8, random);
    std::vector<QuerySpec> specs = testing::Specs(kQueries, 10);
    for (QuerySpec& spec : specs) spec.mask = &mask;
    EXPECT_EQ(Rescans(bench.Expect({queries->view(), specs}, "one row in eight")), 0U);
  }
}

TEST(GpuEngineTest, ScoresOfMinusZeroAreZero) {
  constexpr std::size_t kRows = 40, kDim = 64;
  testing::ResetEmulatedGpu(CardOf(0), 1);
  // Each of the 32 lanes ends with a product too small for any float, of negative sign.
  const auto rows = std::make_shared<PaddedRows>(kRows, kDim);
  PaddedRows query(1, kDim);
  query[0][0] = 1;
  for (std::size_t i = kDim / 2; i < kDim; ++i) query[0][i] = 1e-30F;
  for (std::size_t row = 0; row < kRows; ++row) {
    (*rows)[row][1] = 1;
    for (std::size_t i = kDim / 2; i < kDim; ++i) (*rows)[row][i] = -1e-30F;
  }
  const auto gpu = testing::OpenEmulatedGpu(EmulatedOptions());
  ASSERT_TRUE(gpu.ok());
  const auto index = (*gpu)->MakeResident(testing::SegmentOf(rows));
  ASSERT_TRUE(index.ok());
  float score = 1;
  ASSERT_TRUE((*index)->Score(query.view(), std::vector<Row>{3}, {&score, 1}).ok());
  EXPECT_EQ(score, 0);
  EXPECT_FALSE(std::signbit(score));
  const std::vector<QuerySpec> specs = testing::Specs(1, 3);
  SearchResult result;
  ASSERT_TRUE((*index)->Search({query.view(), specs}, result).ok());
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(result.Hits(0)[rank].row, rank) << "ties go to the lower row";
    EXPECT_FALSE(std::signbit(result.Hits(0)[rank].score));
  }
}

TEST(GpuEngineTest, ScoresListedRowsInPieces) {
  constexpr std::size_t kRows = 3'000, kDim = 32, kQueries = 150;
  testing::ResetEmulatedGpu(CardOf(0), 1);
  SeededRandom random(17);
  const auto rows = testing::UnitRows(kRows, kDim, random);
  const auto gpu = testing::OpenEmulatedGpu(EmulatedOptions());
  ASSERT_TRUE(gpu.ok());
  const auto index = (*gpu)->MakeResident(testing::SegmentOf(rows, 70));
  ASSERT_TRUE(index.ok());
  const auto queries = testing::UnitRows(kQueries, kDim, random);
  std::vector<Row> wanted;
  for (Row row = 0; row < kRows; ++row) {
    if (random.OneIn(2)) wanted.push_back(70 + row);
  }
  std::vector<float> scores(kQueries * wanted.size());
  ASSERT_TRUE((*index)->Score(queries->view(), wanted, scores).ok());
  for (std::size_t query = 0; query < kQueries; ++query) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(scores[query * wanted.size() + i],
                certificate::CanonicalScoreReference(queries->view()[query],
                                                     rows->view()[wanted[i] - 70]));
    }
  }
}

TEST(GpuEngineTest, AnswersForASegmentWithoutRows) {
  testing::ResetEmulatedGpu(CardOf(0), 1);
  Bench bench(EmulatedOptions(), std::make_shared<PaddedRows>(0, 24), Metric::kCosine);
  SeededRandom random(1);
  const auto queries = testing::UnitRows(2, 24, random);
  const RowMask none(0);
  std::vector<QuerySpec> specs = testing::Specs(2, 5);
  specs[1].mask = &none;
  bench.Expect({queries->view(), specs}, "no rows");
}

}  // namespace
}  // namespace simile::backend

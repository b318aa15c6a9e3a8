// Each strategy of the GPU engine on the emulated device, on larger segments than those of the
// conformance cases: gates that reject rows, samples smaller than the segment, several tiles. The
// expected answers are the plain scan's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/scan_backend.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/resident_rows.h"
#include "backend/cuda/too_high_gate.h"
#include "backend/segments.h"
#include "certificate/canonical_score.h"
#include "conformance/rotation.h"
#include "emulated_cuda/emulated_device.h"
#include "simile/limits.h"

namespace simile::backend {
namespace {

using tests::CardOf;
using tests::EmulatedOptions;
using tests::ForcedStrategy;
using tests::PaddedRows;
using tests::SeededRandom;
using tests::SetScore;
using tests::TooHighGate;

// One segment on the GPU, and in the plain scan for the expected answers.
class Bench {
 public:
  Bench(const GpuOptions& options, const std::shared_ptr<PaddedRows>& rows, Metric metric) {
    auto opened = tests::OpenEmulatedGpu(options);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    gpu_ = *std::move(opened);
    scan_ = cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), 1);
    SegmentRows segment = tests::MakeSegment(rows);
    segment.metric = metric;
    auto resident = gpu_->MakeResident(segment);
    EXPECT_TRUE(resident.ok()) << resident.status().ToString();
    on_gpu_ = *resident;
    on_cpu_ = *scan_->MakeResident(segment);
  }

  // Expects the scan's answers and returns the GPU's.
  const SearchResult& Expect(const SearchBatch& batch, const std::string& what) {
    const absl::Status status = on_gpu_->Search(batch, result_);
    EXPECT_TRUE(status.ok()) << what << ": " << status.ToString();
    SearchResult expected;
    EXPECT_TRUE(on_cpu_->Search(batch, expected).ok());
    tests::ExpectSameAnswers(result_, expected, what);
    EXPECT_EQ(emulated_cuda::TakeReport(), "") << what;
    return result_;
  }
  // What the GPU says of one query before it is asked.
  std::string_view engine() const { return on_gpu_->engine(); }

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

// Every query without a rescan is answered by the strategy, and at most one in 50 is rescanned.
void ExpectStrategy(const SearchResult& result, const std::string& engine) {
  for (std::size_t query = 0; query < result.batch(); ++query) {
    if (result.Cost(query).rescans == 0) {
      EXPECT_TRUE(std::string(result.Engine(query)).starts_with(engine)) << result.Engine(query);
    }
  }
  EXPECT_LE(Rescans(result) * 50, result.batch());
}

struct StrategyCase {
  const char* name;
  ForcedStrategy forced;
  const char* engine;
  std::size_t row_count;
  std::size_t dim;
  std::size_t batch;
  std::uint32_t k;
};

class GpuStrategyTest : public ::testing::TestWithParam<std::tuple<StrategyCase, std::size_t>> {};

TEST_P(GpuStrategyTest, AnswersAsTheScanDoes) {
  const auto& [strategy, card] = GetParam();
  tests::ResetEmulatedGpu(CardOf(card), 100 + card);
  SeededRandom random(strategy.row_count + strategy.k);
  Bench bench(EmulatedOptions(strategy.forced),
              tests::UnitRows(strategy.row_count, strategy.dim, random), Metric::kCosine);
  const auto queries = tests::UnitRows(strategy.batch, strategy.dim, random);
  const std::vector<QuerySpec> specs = tests::Specs(strategy.batch, strategy.k);
  const SearchResult& result = bench.Expect({queries->view(), specs}, strategy.name);
  // A card without the int8 scan uses the next one.
  const bool is_int8 = std::string_view(strategy.engine) == "int8-scan";
  ExpectStrategy(result, is_int8 && CardOf(card).capability < 80 ? "fp16-scan" : strategy.engine);
  // As a captured graph, too.
  bench.Expect({queries->view(), specs}, "captured");
  const bool is_alike = strategy.batch == 1 || strategy.forced == ForcedStrategy::kCanonical;
  if (is_alike && Rescans(result) == 0) {
    EXPECT_EQ(bench.engine(), result.Engine(0));
  }
}

constexpr StrategyCase kStrategyCases[] = {
    {"int8_1", ForcedStrategy::kInt8Scan, "int8-scan", 12'000, 40, 1, 10},
    {"int8_8_wide", ForcedStrategy::kInt8Scan, "int8-scan", 2'500, 400, 8, 10},
    {"int8_9", ForcedStrategy::kInt8Scan, "int8-scan", 9'001, 64, 9, 100},
    {"int8_17", ForcedStrategy::kInt8Scan, "int8-scan", 6'007, 33, 17, 10},
    {"int8_33", ForcedStrategy::kInt8Scan, "int8-scan", 6'007, 160, 33, 10},
    {"int8_64", ForcedStrategy::kInt8Scan, "int8-scan", 5'023, 96, 64, 1},
    {"int8_long_answer", ForcedStrategy::kInt8Scan, "int8-scan", 9'000, 32, 3, 150},
    {"scan_1", ForcedStrategy::kRowScan, "fp16-scan", 12'000, 40, 1, 10},
    {"scan_16_wide", ForcedStrategy::kRowScan, "fp16-scan", 2'500, 400, 16, 10},
    {"scan_17", ForcedStrategy::kRowScan, "fp16-scan", 9'001, 64, 17, 100},
    {"scan_33", ForcedStrategy::kRowScan, "fp16-scan", 6'007, 33, 33, 10},
    {"scan_64", ForcedStrategy::kRowScan, "fp16-scan", 5'023, 96, 64, 1},
    {"scan_long_answer", ForcedStrategy::kRowScan, "fp16-scan", 30'000, 32, 3, 300},
    {"gemm_1", ForcedStrategy::kGemm, "fp16-gemm", 5'000, 40, 1, 10},
    {"gemm_70", ForcedStrategy::kGemm, "fp16-gemm", 6'001, 64, 70, 10},
    {"gemm_long_answer", ForcedStrategy::kGemm, "fp16-gemm", 9'000, 32, 9, 900},
    {"gemm_200", ForcedStrategy::kGemm, "fp16-gemm", 3'000, 32, 200, 20},
    {"canonical_9", ForcedStrategy::kCanonical, "scan", 12'000, 32, 9, 50},
    {"as_served_1", ForcedStrategy::kNone, "int8-scan", 9'000, 64, 1, 10},
    {"as_served_90", ForcedStrategy::kNone, "fp16-gemm", 6'000, 64, 90, 10},
};

INSTANTIATE_TEST_SUITE_P(Strategies, GpuStrategyTest,
                         ::testing::Combine(::testing::ValuesIn(kStrategyCases),
                                            ::testing::Range<std::size_t>(0, 4)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_on_" +
                                  CardOf(std::get<1>(test.param)).name;
                         });

class GpuFilterTest : public ::testing::TestWithParam<ForcedStrategy> {};

// Every query has its own mask, exclusions and k: more masks than the cache holds, and more
// excluded rows than a list holds.
TEST_P(GpuFilterTest, AnswersMixedQueriesAsTheScanDoes) {
  constexpr std::size_t kRows = 7'000, kDim = 32, kBatch = 90;
  tests::ResetEmulatedGpu(CardOf(0), 7);
  SeededRandom random(11);
  Bench bench(EmulatedOptions(GetParam()), tests::UnitRows(kRows, kDim, random), Metric::kCosine);
  const auto queries = tests::UnitRows(kBatch, kDim, random);
  std::vector<RowMask> masks;
  std::vector<std::vector<Row>> excluded(kBatch);
  std::vector<QuerySpec> specs = tests::Specs(kBatch, 10);
  const Row first_row = cuda::ShuffledRows(kRows).front();
  masks.reserve(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) {
    const std::size_t one_in = std::vector<std::size_t>{2, 5, 40, 1'000, 0}[i % 5];
    masks.push_back(tests::DrawRowMask(kRows, one_in, random));
    if (i % 3 != 0) specs[i].mask = &masks[i];
    const std::size_t excluded_count = i % 10 == 0 ? 3'000 : 20 * (i % 4);
    for (Row row = 0; row < kRows && excluded[i].size() < excluded_count; ++row) {
      // The row at the first position too, to which what lies beyond a list of hits would refer.
      if (random.OneIn(2) || row == first_row) excluded[i].push_back(row);
    }
    if (excluded_count != 0 && excluded[i].back() < first_row) excluded[i].push_back(first_row);
    specs[i].excluded_rows = excluded[i];
    specs[i].k = static_cast<std::uint32_t>(random.Between(1, 60));
  }
  const SearchBatch batch{queries->view(), specs};
  bench.Expect(batch, "masks are new");
  bench.Expect(batch, "masks are cached");
}

INSTANTIATE_TEST_SUITE_P(Strategies, GpuFilterTest,
                         ::testing::Values(ForcedStrategy::kNone, ForcedStrategy::kInt8Scan,
                                           ForcedStrategy::kRowScan, ForcedStrategy::kGemm,
                                           ForcedStrategy::kGather, ForcedStrategy::kCanonical));

std::size_t CountCalls(const std::string& name, std::size_t from = 0) {
  const std::vector<std::string> calls = emulated_cuda::CallLog();
  return static_cast<std::size_t>(
      std::count_if(calls.begin() + static_cast<std::ptrdiff_t>(from), calls.end(),
                    [&](const std::string& call) { return call.find(name) != std::string::npos; }));
}

// Both ways to exchange queries and answers with the host.
TEST(GpuEngineTest, ExchangesOneQueryThroughMappedMemoryOrCopies) {
  constexpr std::size_t kRows = 5'000, kDim = 96;
  for (const unsigned mapped_queries_max : {0U, 1U}) {
    tests::ResetEmulatedGpu(CardOf(0), 5);
    SeededRandom random(31);
    GpuOptions options = EmulatedOptions();
    options.tuning.mapped_queries_max = mapped_queries_max;
    Bench bench(options, tests::UnitRows(kRows, kDim, random), Metric::kCosine);
    const auto queries = tests::UnitRows(6, kDim, random);
    const std::vector<QuerySpec> specs = tests::Specs(1, 10);
    const std::size_t before = emulated_cuda::CallCount();
    for (std::size_t query = 0; query < 6; ++query) {
      bench.Expect({queries->view().Slice(query, 1), specs}, "query by query");
    }
    // The first one runs without a graph, the second is captured.
    EXPECT_EQ(CountCalls("TakeQueriesKernel", before), mapped_queries_max == 0 ? 0U : 2U);
    EXPECT_EQ(CountCalls("cudaMemcpyAsync", before), mapped_queries_max == 0 ? 4U : 0U);
    EXPECT_EQ(CountCalls("cudaGraphLaunch", before), 5U);
  }
}

// Few excluded rows are dropped when hits are listed, more of them before.
TEST(GpuEngineTest, DropsExcludedRowsAmongTheBest) {
  constexpr std::size_t kRows = 9'000, kDim = 32;
  constexpr std::array<std::size_t, 5> kExcluded{1, 4, 5, 30, 0};
  SeededRandom random(47);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  const auto queries = tests::UnitRows(kExcluded.size(), kDim, random);
  for (const ForcedStrategy strategy :
       {ForcedStrategy::kInt8Scan, ForcedStrategy::kRowScan, ForcedStrategy::kGemm}) {
    // Finished by a block each, by all blocks, in steps.
    for (const std::uint32_t k : {10U, 40U, 150U}) {
      tests::ResetEmulatedGpu(CardOf(0), k);
      Bench bench(EmulatedOptions(strategy), rows, Metric::kCosine);
      std::vector<QuerySpec> specs = tests::Specs(kExcluded.size(), k);
      const SearchBatch batch{queries->view(), specs};
      const std::string what = "k " + std::to_string(k);
      const SearchResult& all = bench.Expect(batch, what);
      std::array<std::vector<Row>, kExcluded.size()> excluded;
      for (std::size_t query = 0; query < kExcluded.size(); ++query) {
        const auto hits = all.Hits(query);
        for (std::size_t i = 0; i < std::min(kExcluded[query], hits.size()); ++i) {
          excluded[query].push_back(hits[i].row);
        }
        std::ranges::sort(excluded[query]);
        specs[query].excluded_rows = excluded[query];
      }
      EXPECT_EQ(Rescans(bench.Expect(batch, what + " without some of the best")), 0U) << what;
    }
  }
}

TEST(GpuEngineTest, SeesThatAMaskHasChangedSinceItWasUsed) {
  constexpr std::size_t kRows = 5'000, kDim = 32;
  tests::ResetEmulatedGpu(CardOf(0), 5);
  SeededRandom random(37);
  Bench bench(EmulatedOptions(ForcedStrategy::kRowScan), tests::UnitRows(kRows, kDim, random),
              Metric::kCosine);
  const auto queries = tests::UnitRows(1, kDim, random);
  RowMask mask = tests::DrawRowMask(kRows, 2, random);
  std::vector<QuerySpec> specs = tests::Specs(1, 10);
  specs[0].mask = &mask;
  const SearchBatch batch{queries->view(), specs};
  const Row best = bench.Expect(batch, "new").Hits(0)[0].row;
  EXPECT_EQ(CountCalls("OrderMaskKernel"), 1U);
  bench.Expect(batch, "known");
  const RowMask same = mask;
  RowMask equal(kRows);
  equal.UniteWith(mask);
  specs[0].mask = &same;
  bench.Expect(batch, "a copy");
  specs[0].mask = &equal;
  bench.Expect(batch, "another mask of the same rows");
  EXPECT_EQ(CountCalls("OrderMaskKernel"), 1U);
  specs[0].mask = &mask;
  mask.Forbid(best);
  EXPECT_NE(bench.Expect(batch, "without its best row").Hits(0)[0].row, best);
  EXPECT_EQ(CountCalls("OrderMaskKernel"), 2U);
}

TEST(GpuEngineTest, AnswersForDotProductsOfUnequalLengths) {
  constexpr std::size_t kRows = 6'000, kDim = 48;
  for (const ForcedStrategy strategy :
       {ForcedStrategy::kInt8Scan, ForcedStrategy::kRowScan, ForcedStrategy::kGemm}) {
    tests::ResetEmulatedGpu(CardOf(0), 3);
    SeededRandom random(5);
    const auto rows = tests::UnitRows(kRows, kDim, random);
    for (std::size_t row = 0; row < kRows; ++row) {
      tests::ScaleTo((*rows)[row], 1 + 9 * static_cast<double>(random.Below(1'000)) / 1'000);
    }
    Bench bench(EmulatedOptions(strategy), rows, Metric::kDot);
    const auto queries = tests::UnitRows(8, kDim, random);
    tests::ScaleTo((*queries)[3], 0x1p40);
    tests::ScaleTo((*queries)[4], 0x1p-40);
    const std::vector<QuerySpec> specs = tests::Specs(8, 10);
    const SearchResult& result = bench.Expect({queries->view(), specs}, "dot");
    EXPECT_EQ(Rescans(result), 0U);
  }
}

// Rows within the int8 scan's bound of each other, which fp16 tells apart: they overflow, and after
// a few such queries the segment is no longer read as int8 rows.
TEST(GpuEngineTest, ReturnsToFp16WhereTooManyRowsAreWithinTheInt8Bound) {
  constexpr std::size_t kRows = 4'500, kDim = 128, kQueries = 5;
  tests::ResetEmulatedGpu(CardOf(0), 9);
  SeededRandom random(14);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  for (std::size_t row = 1; row < kRows; ++row) {
    for (std::size_t i = 0; i < kDim; ++i) {
      (*rows)[row][i] = (*rows)[0][i] + 0.045F * (*rows)[row][i];
    }
    tests::ScaleTo((*rows)[row], 1);
  }
  Bench bench(EmulatedOptions(ForcedStrategy::kInt8Scan), rows, Metric::kCosine);
  const auto queries = tests::UnitRows(kQueries, kDim, random);
  const std::vector<QuerySpec> specs = tests::Specs(kQueries, 10);
  const SearchBatch batch{queries->view(), specs};
  const SearchResult& first = bench.Expect(batch, "first");
  EXPECT_EQ(Rescans(first), kQueries);
  for (std::size_t query = 0; query < kQueries; ++query) {
    EXPECT_TRUE(std::string(first.Engine(query)).starts_with("fp16-scan")) << first.Engine(query);
  }
  bench.Expect(batch, "counted");
  EXPECT_EQ(Rescans(bench.Expect(batch, "returned")), 0U);
}

TEST(GpuEngineTest, GrowsTheCapacityWhenHitsOverflow) {
  constexpr std::size_t kRows = 9'000, kDim = 32;
  tests::ResetEmulatedGpu(CardOf(0), 9);
  SeededRandom random(13);
  const auto rows = tests::NearlyEqualRows(kRows, kDim, random);
  Bench bench(EmulatedOptions(ForcedStrategy::kRowScan), rows, Metric::kCosine);
  const PaddedRows& all = *rows;
  PaddedRows query(1, kDim);
  std::ranges::copy(all[0], query[0].begin());
  const std::vector<QuerySpec> specs = tests::Specs(1, 10);
  EXPECT_EQ(Rescans(bench.Expect({query.view(), specs}, "first")), 1U);
  for (int i = 0; i < 6; ++i) bench.Expect({query.view(), specs}, "growing");
  EXPECT_EQ(Rescans(bench.Expect({query.view(), specs}, "grown")), 0U);
}

// Neither answers in one block nor those that all blocks share.
TEST(GpuEngineTest, AnswersTheOthersWhereSomeQuerysHitsOverflow) {
  constexpr std::size_t kRows = 9'000, kDim = 32, kQueries = 8;
  SeededRandom random(43);
  const auto rows = tests::NearlyEqualRows(kRows, kDim, random);
  const PaddedRows& all = *rows;
  const auto queries = tests::UnitRows(kQueries, kDim, random);
  for (std::size_t query = 0; query < kQueries; query += 2) {
    std::ranges::copy(all[0], (*queries)[query].begin());
  }
  for (const std::uint32_t k : {10U, 40U}) {
    tests::ResetEmulatedGpu(CardOf(0), k);
    Bench bench(EmulatedOptions(ForcedStrategy::kRowScan), rows, Metric::kCosine);
    const std::vector<QuerySpec> specs = tests::Specs(kQueries, k);
    EXPECT_EQ(Rescans(bench.Expect({queries->view(), specs}, "overflows")), kQueries / 2);
  }
}

// Rows that make the gate too high: near_count of them score near_below less than the best. Expects
// the right answer and returns the rescans.
//   engine  what answers in the end
std::uint64_t RescansAfterTooHighAGate(ForcedStrategy strategy, unsigned near_count,
                                       float near_below, const char* engine = "scan") {
  // The emulated device takes its time to form codes.
  const unsigned row_count = strategy == ForcedStrategy::kInt8Scan ? 40'000 : 80'000;
  const TooHighGate gate{row_count, 100, near_count, near_below};
  tests::ResetEmulatedGpu(CardOf(0), 4);
  const GpuOptions options = EmulatedOptions(strategy);
  Bench bench(options, tests::MakeRows(gate, options), Metric::kCosine);
  PaddedRows query(1, tests::kTooHighGateDim);
  query[0][0] = 1;
  const std::vector<QuerySpec> specs = tests::Specs(1, gate.wanted);
  const SearchResult& result = bench.Expect({query.view(), specs}, "too high a gate");
  EXPECT_TRUE(std::string(result.Engine(0)).starts_with(engine)) << result.Engine(0);
  return Rescans(result);
}

TEST(GpuEngineTest, AnswersAgainWhereTheGateWasTooHigh) {
  EXPECT_EQ(RescansAfterTooHighAGate(ForcedStrategy::kInt8Scan, 0, 0), 1U);
  EXPECT_EQ(RescansAfterTooHighAGate(ForcedStrategy::kRowScan, 0, 0), 1U);
  EXPECT_EQ(RescansAfterTooHighAGate(ForcedStrategy::kGemm, 0, 0), 1U);
}

// The gate is the sample's less twice the bound, and the last hit less than one bound above it.
TEST(GpuEngineTest, AnswersAgainWhereTheLastHitDoesNotClearTheGate) {
  EXPECT_EQ(RescansAfterTooHighAGate(ForcedStrategy::kGemm, 200, 2e-3F), 1U);
  // The scan finds the sample's by bisection: here 0.9 - 0.7 / 2^9.
  EXPECT_EQ(RescansAfterTooHighAGate(ForcedStrategy::kRowScan, 200, 2.4e-3F), 1U);
}

// The last score found is a gate that cannot be too high: one more pass over the int8 rows.
TEST(GpuEngineTest, ScansInt8RowsAgainWithAScoreThatIsReached) {
  EXPECT_EQ(RescansAfterTooHighAGate(ForcedStrategy::kInt8Scan, 200, 1e-2F, "int8-scan"), 1U);
}

// Barriers over the grid and within blocks, under many orders of execution.
TEST(GpuEngineTest, ScansRightInEveryOrder) {
  constexpr std::size_t kRows = 4'000, kDim = 64, kQueries = 20;
  SeededRandom random(29);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  const auto queries = tests::UnitRows(kQueries, kDim, random);
  const auto rotation = conformance::Rotation::FromEnvironment();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    if (!rotation.Covers(seed)) continue;
    tests::ResetEmulatedGpu(CardOf(conformance::Rotation::VariantOf(seed)), seed);
    for (const ForcedStrategy strategy : {ForcedStrategy::kRowScan, ForcedStrategy::kInt8Scan}) {
      GpuOptions options = EmulatedOptions(strategy);
      options.tuning.mapped_queries_max = seed / 2 % 2 * 64;
      Bench bench(options, rows, Metric::kCosine);
      // Short answers are finished by a block each, longer ones by all blocks.
      for (const std::uint32_t k : {10U, 40U}) {
        const std::vector<QuerySpec> specs = tests::Specs(kQueries, k);
        const std::string what = "device seed " + std::to_string(seed) + ", k " + std::to_string(k);
        EXPECT_EQ(Rescans(bench.Expect({queries->view(), specs}, what)), 0U) << what;
      }
    }
  }
}

// Positions after the last row of a tile or a load have undefined scores, here higher than any
// row's. Each of the best rows is the only good one of its group.
TEST(GpuEngineTest, SamplesNoPositionAfterTheLastRow) {
  constexpr unsigned kRows = 510, kDim = 32, kWanted = 10, kGroup = 32;
  const std::vector<unsigned> row_of = cuda::ShuffledRows(kRows);
  for (const ForcedStrategy strategy :
       {ForcedStrategy::kInt8Scan, ForcedStrategy::kRowScan, ForcedStrategy::kGemm}) {
    tests::ResetEmulatedGpu(CardOf(0), 4);  // its poison exceeds any score
    SeededRandom random(19);
    const auto rows = std::make_shared<PaddedRows>(kRows, kDim);
    for (unsigned position = 0; position < kRows; ++position) {
      const unsigned group = position / kGroup;
      const bool best = position % kGroup == 0 && group < kWanted;
      SetScore((*rows)[row_of[position]], best ? -0.3F - 0.01F * static_cast<float>(group) : -0.9F,
               random);
    }
    Bench bench(EmulatedOptions(strategy), rows, Metric::kCosine);
    PaddedRows query(1, kDim);
    query[0][0] = 1;
    const std::vector<QuerySpec> specs = tests::Specs(1, kWanted);
    const SearchResult& result = bench.Expect({query.view(), specs}, "negative scores");
    const char* engine = strategy == ForcedStrategy::kInt8Scan ? "int8" : "fp16";
    EXPECT_TRUE(std::string(result.Engine(0)).starts_with(engine)) << result.Engine(0);
  }
}

// Scans have slots for more queries than the workspace has memory for.
TEST(GpuEngineTest, KeepsToAWorkspaceOfFewQueries) {
  constexpr std::size_t kRows = 6'000, kDim = 64;
  SeededRandom random(41);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  for (const ForcedStrategy strategy : {ForcedStrategy::kRowScan, ForcedStrategy::kInt8Scan}) {
    for (const unsigned batch : {1U, 5U, 17U}) {
      tests::ResetEmulatedGpu(CardOf(0), batch);
      GpuOptions options = EmulatedOptions(strategy);
      options.workspace.queries_max = batch;
      options.workspace.stride_max = kDim;
      Bench bench(options, rows, Metric::kCosine);
      const auto queries = tests::UnitRows(batch, kDim, random);
      const std::vector<QuerySpec> specs = tests::Specs(batch, batch == 1 ? 100 : 10);
      bench.Expect({queries->view(), specs}, std::to_string(batch) + " queries");
    }
  }
}

TEST(GpuEngineTest, SamplesOnlyRowsThatPass) {
  constexpr std::size_t kRows = 9'000, kDim = 32, kQueries = 4;
  for (const ForcedStrategy strategy :
       {ForcedStrategy::kInt8Scan, ForcedStrategy::kRowScan, ForcedStrategy::kGemm}) {
    tests::ResetEmulatedGpu(CardOf(0), 6);
    SeededRandom random(23);
    Bench bench(EmulatedOptions(strategy), tests::UnitRows(kRows, kDim, random), Metric::kCosine);
    const auto queries = tests::UnitRows(kQueries, kDim, random);
    const RowMask mask = tests::DrawRowMask(kRows, 8, random);
    std::vector<QuerySpec> specs = tests::Specs(kQueries, 10);
    for (QuerySpec& spec : specs) spec.mask = &mask;
    EXPECT_EQ(Rescans(bench.Expect({queries->view(), specs}, "one row in eight")), 0U);
  }
}

TEST(GpuEngineTest, ScoresOfMinusZeroAreZero) {
  constexpr std::size_t kRows = 40, kDim = 64;
  tests::ResetEmulatedGpu(CardOf(0), 1);
  // The last product of each of the 32 lanes is negative and underflows.
  const auto rows = std::make_shared<PaddedRows>(kRows, kDim);
  PaddedRows query(1, kDim);
  query[0][0] = 1;
  for (std::size_t i = kDim / 2; i < kDim; ++i) query[0][i] = 1e-30F;
  for (std::size_t row = 0; row < kRows; ++row) {
    (*rows)[row][1] = 1;
    for (std::size_t i = kDim / 2; i < kDim; ++i) (*rows)[row][i] = -1e-30F;
  }
  const auto gpu = tests::OpenEmulatedGpu(EmulatedOptions());
  ASSERT_TRUE(gpu.ok());
  const auto index = (*gpu)->MakeResident(tests::MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  float score = 1;
  ASSERT_TRUE((*index)->Score(query.view(), std::vector<Row>{3}, {&score, 1}, nullptr).ok());
  EXPECT_EQ(score, 0);
  EXPECT_FALSE(std::signbit(score));
  const std::vector<QuerySpec> specs = tests::Specs(1, 3);
  SearchResult result;
  ASSERT_TRUE((*index)->Search({query.view(), specs}, result).ok());
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(result.Hits(0)[rank].row, rank) << "ties go to the lower row";
    EXPECT_FALSE(std::signbit(result.Hits(0)[rank].score));
  }
}

TEST(GpuEngineTest, ScoresListedRowsInPieces) {
  constexpr std::size_t kRows = 3'000, kDim = 32, kQueries = 150;
  tests::ResetEmulatedGpu(CardOf(0), 1);
  SeededRandom random(17);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  const auto gpu = tests::OpenEmulatedGpu(EmulatedOptions());
  ASSERT_TRUE(gpu.ok());
  const auto index = (*gpu)->MakeResident(tests::MakeSegment(rows, 70));
  ASSERT_TRUE(index.ok());
  const auto queries = tests::UnitRows(kQueries, kDim, random);
  std::vector<Row> wanted;
  for (Row row = 0; row < kRows; ++row) {
    if (random.OneIn(2)) wanted.push_back(70 + row);
  }
  std::vector<float> scores(kQueries * wanted.size());
  ASSERT_TRUE((*index)->Score(queries->view(), wanted, scores, nullptr).ok());
  for (std::size_t query = 0; query < kQueries; ++query) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(scores[query * wanted.size() + i],
                certificate::CanonicalScoreReference(queries->view()[query],
                                                     rows->view()[wanted[i] - 70]));
    }
  }
}

// The first run of a pass is no graph yet, the second captures one, the third launches it again.
TEST(GpuEngineTest, TimesTheDeviceWhereItIsAskedFor) {
  constexpr std::size_t kRows = 5'000, kDim = 40;
  for (const auto forced : {ForcedStrategy::kInt8Scan, ForcedStrategy::kRowScan,
                            ForcedStrategy::kGemm, ForcedStrategy::kCanonical}) {
    tests::ResetEmulatedGpu(CardOf(0), 1);
    SeededRandom random(29);
    Bench bench(EmulatedOptions(forced), tests::UnitRows(kRows, kDim, random), Metric::kCosine);
    for (const std::size_t batch :
         {std::size_t{1}, std::size_t{3}}) {  // one is exchanged in mapped memory
      const auto queries = tests::UnitRows(batch, kDim, random);
      const std::vector<QuerySpec> specs = tests::Specs(batch, 10);
      const std::string what = "strategy " + std::to_string(static_cast<int>(forced));
      for (int run = 0; run < 3; ++run) {
        DeviceTime time;
        bench.Expect({queries->view(), specs, &time}, what);
        EXPECT_TRUE(time.measured) << what << ", run " << run;
        EXPECT_GT(time.microseconds, 0) << what << ", run " << run;
        bench.Expect({queries->view(), specs}, what);
      }
    }
  }
}

TEST(GpuEngineTest, TimesTheScoresOfListedRows) {
  tests::ResetEmulatedGpu(CardOf(0), 1);
  SeededRandom random(31);
  const auto gpu = tests::OpenEmulatedGpu(EmulatedOptions());
  ASSERT_TRUE(gpu.ok());
  const auto index = (*gpu)->MakeResident(tests::MakeSegment(tests::UnitRows(300, 32, random)));
  ASSERT_TRUE(index.ok());
  const auto query = tests::UnitRows(1, 32, random);
  std::vector<float> scores(2);
  DeviceTime time;
  ASSERT_TRUE((*index)->Score(query->view(), std::vector<Row>{3, 7}, scores, &time).ok());
  const double once = time.microseconds;
  EXPECT_GT(once, 0);
  ASSERT_TRUE((*index)->Score(query->view(), std::vector<Row>{3, 7}, scores, &time).ok());
  EXPECT_EQ(time.microseconds, 2 * once);
}

// The bound holds for queries of at most unit length, so a longer one is scaled to it.
TEST(GpuEngineTest, AnswersQueriesOfEveryLengthForBothMetrics) {
  constexpr std::size_t kRows = 6'000, kDim = 40;
  tests::ResetEmulatedGpu(CardOf(0), 1);
  SeededRandom random(23);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  const auto queries = tests::UnitRows(4, kDim, random);
  tests::ScaleTo((*queries)[0], 1 + kStoredLengthError);
  tests::ScaleTo((*queries)[1], 0.2);
  tests::ScaleTo((*queries)[2], 1.0001);
  tests::ScaleTo((*queries)[3], 1'000);
  const std::vector<QuerySpec> specs = tests::Specs(4, 10);
  for (const Metric metric : {Metric::kCosine, Metric::kDot}) {
    for (const ForcedStrategy strategy : {ForcedStrategy::kRowScan, ForcedStrategy::kInt8Scan}) {
      Bench bench(EmulatedOptions(strategy), rows, metric);
      bench.Expect({queries->view(), specs}, metric == Metric::kCosine ? "cosine" : "dot");
    }
  }
}

// Queries are scaled by powers of two, which changes no bit of a cheap score, so the same rows
// reach the gate and are rescored. With another scale the bound would be of another size than the
// scores.
TEST(GpuEngineTest, RescoresTheSameRowsForAQueryOfEveryPowerOfTwo) {
  constexpr std::size_t kRows = 6'000, kDim = 40;
  constexpr std::array<double, 4> kLengths{1, 0x1p-7, 0x1p10, 2};
  SeededRandom random(53);
  const auto rows = tests::UnitRows(kRows, kDim, random);
  const auto queries = tests::UnitRows(kLengths.size(), kDim, random);
  for (std::size_t query = 0; query < kLengths.size(); ++query) {
    for (std::size_t i = 0; i < kDim; ++i) {
      (*queries)[query][i] = (*queries)[0][i] * static_cast<float>(kLengths[query]);
    }
  }
  const std::vector<QuerySpec> specs = tests::Specs(kLengths.size(), 10);
  for (const ForcedStrategy strategy :
       {ForcedStrategy::kInt8Scan, ForcedStrategy::kRowScan, ForcedStrategy::kGemm}) {
    tests::ResetEmulatedGpu(CardOf(0), 1);
    Bench bench(EmulatedOptions(strategy), rows, Metric::kDot);
    const SearchResult& result = bench.Expect({queries->view(), specs}, "powers of two");
    EXPECT_EQ(Rescans(result), 0U);
    for (std::size_t query = 1; query < kLengths.size(); ++query) {
      EXPECT_EQ(result.Cost(query).rows_rescored, result.Cost(0).rows_rescored) << query;
    }
  }
}

TEST(GpuEngineTest, AnswersForASegmentWithoutRows) {
  tests::ResetEmulatedGpu(CardOf(0), 1);
  Bench bench(EmulatedOptions(), std::make_shared<PaddedRows>(0, 24), Metric::kCosine);
  SeededRandom random(1);
  const auto queries = tests::UnitRows(2, 24, random);
  const RowMask none(0);
  std::vector<QuerySpec> specs = tests::Specs(2, 5);
  specs[1].mask = &none;
  bench.Expect({queries->view(), specs}, "no rows");
}

}  // namespace
}  // namespace simile::backend

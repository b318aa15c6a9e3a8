#include "backend/cpu/int8_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/counted_kernel.h"
#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/int8_pass.h"
#include "backend/cpu/packed_codes.h"
#include "backend/int8_fixture.h"
#include "backend/small_blocks.h"

namespace simile::backend::cpu {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::CountedKernel;
using tests::DrawRowMask;
using tests::MakeSegment;
using tests::PaddedRows;
using tests::ScaleTo;
using tests::SeededRandom;
using tests::SmallBlocks;
using tests::Specs;
using tests::UnitRows;

class Int8BackendTest : public tests::Int8Fixture {
 protected:
  static std::string SeedText(std::uint64_t seed) { return "seed " + std::to_string(seed); }
};

TEST_F(Int8BackendTest, RunsTheInstructionSetItIsForcedTo) {
  constexpr std::uint64_t kSeed = 81;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(700, 70, random);
  const auto queries = UnitRows(33, 70, random);
  for (const Int8Kernel* kernel : SupportedInt8Kernels()) {
    for (const std::size_t batch : {1U, 33U}) {
      const std::vector<QuerySpec> specs = Specs(batch, 5);
      Int8Options options = SmallBlocks(2, kernel->isa);
      ASSERT_STREQ(options.large->isa, kernel->isa);
      ASSERT_STREQ(options.small->isa, kernel->isa);
      CountedKernel counted(*kernel);
      options.large = options.small = counted.kernel();
      ExpectTheScansAnswers(options, MakeSegment(rows), {queries->view().Slice(0, batch), specs},
                            SeedText(kSeed));
      const std::string name = std::string("int8-") + kernel->isa;
      for (std::size_t query = 0; query < batch; ++query) EXPECT_EQ(Engine(query), name);
      EXPECT_GE(counted.scans(), 1U) << kernel->isa;
    }
  }
}

// Rows in tight groups, so that int4 separates the query's group from all others.
TEST_F(Int8BackendTest, AnswersTheSmallestBatchesFromInt4) {
  constexpr std::uint64_t kSeed = 89;
  constexpr std::size_t kDim = 256;
  constexpr std::size_t kCentres = 800;
  constexpr Row kRowCount = 40'000;
  SeededRandom random(kSeed);
  const auto centres = UnitRows(kCentres, kDim, random);
  const auto near_one = [&](float* row, std::size_t centre) {
    for (std::size_t i = 0; i < kDim; ++i) row[i] = (*centres)[centre][i] + random.Signed() / 64;
    ScaleTo({row, kDim}, 1);
  };
  const auto rows = std::make_shared<PaddedRows>(kRowCount, kDim);
  for (std::size_t r = 0; r < rows->row_count(); ++r) near_one((*rows)[r].data(), r % kCentres);
  const auto queries = std::make_shared<PaddedRows>(5, kDim);
  for (std::size_t q = 0; q < 5; ++q) near_one((*queries)[q].data(), q);
  const RowMask half = DrawRowMask(kRowCount, 2, random);
  const std::vector<Row> excluded{0, kCentres, 2 * kCentres, 45 * kCentres};

  for (const Int8Kernel* kernel : SupportedInt8Kernels()) {
    for (const std::size_t batch : {1U, 4U, 5U}) {
      std::vector<QuerySpec> specs = Specs(batch, 5);
      specs[0].mask = &half;
      specs[0].excluded_rows = excluded;
      Int8Options options = SmallBlocks(1, kernel->isa);
      options.tuning.block_bytes = 64U << 10;
      options.tuning.int4_from_code_bytes = kRowCount * kDim;
      ExpectTheScansAnswers(options, MakeSegment(rows), {queries->view().Slice(0, batch), specs},
                            SeedText(kSeed));
      const bool int4 = kernel->reads_int4 && batch <= 4;
      const std::string name = std::string(int4 ? "int4-" : "int8-") + kernel->isa;
      for (std::size_t query = 0; query < batch; ++query) EXPECT_EQ(Engine(query), name);
    }
    Int8Options options = SmallBlocks(1, kernel->isa);
    options.tuning.int4_from_code_bytes = (kRowCount + 100) * kDim;
    ExpectTheScansAnswers(options, MakeSegment(rows), {queries->view().Slice(0, 1), Specs(1, 10)},
                          "too few");
    EXPECT_EQ(Engine(0), std::string("int8-") + kernel->isa);
  }
}

// All rows are about as far from the query: bytes separate them, int4 does not.
TEST_F(Int8BackendTest, ReturnsToBytesWhereInt4DropsNothing) {
  constexpr std::uint64_t kSeed = 90;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(20'000, 384, random);
  const auto queries = UnitRows(4, 384, random);
  Int8Options options = SmallBlocks(1, "portable");
  options.tuning.int4_from_code_bytes = 0;
  CountedKernel counted(*options.small);
  options.large = options.small = counted.kernel();
  for (const std::size_t batch : {1U, 4U}) {
    ExpectTheScansAnswers(options, MakeSegment(rows),
                          {queries->view().Slice(0, batch), Specs(batch, 100)}, SeedText(kSeed));
    EXPECT_GT(counted.int4_scans(), 0U);
    EXPECT_LT(counted.int4_scans(), counted.scans() / 4);
    for (std::size_t query = 0; query < batch; ++query) {
      EXPECT_EQ(Engine(query), "int8-portable");
      EXPECT_LT(result().Cost(query).rows_rescored, 1'000U);
    }
  }
}

TEST_F(Int8BackendTest, HasNoKernelsForAnUnknownInstructionSet) {
  EXPECT_EQ(OptionsFor("nonsense").large, nullptr);
}

TEST_F(Int8BackendTest, SaysWhatItIs) {
  const auto backend = MakeInt8Backend(SmallBlocks(2, "portable"));
  EXPECT_EQ(backend->info().name, "cpu");
  EXPECT_EQ(backend->info().engine, "int8-portable");
  EXPECT_THAT(backend->info().device, HasSubstr(", 2 threads"));
}

PackedShape ShapeWithInt4(std::size_t row_count, std::size_t dim, const Int8Options& options) {
  PackedShape shape = ChooseShape(row_count, dim, options.tuning.block_bytes);
  shape.has_int4 = options.small->reads_int4;
  return shape;
}

TEST_F(Int8BackendTest, PlansTheBytesOfItsPackedRows) {
  const Int8Options options = OptionsFor("");
  const auto backend = MakeInt8Backend(options);
  EXPECT_EQ(backend->Plan({1'000'000, 384, Metric::kCosine}).host_bytes,
            ShapeWithInt4(1'000'000, 384, options).bytes());
  EXPECT_EQ(backend->Plan({100'000, 384, Metric::kCosine}).host_bytes,
            ChooseShape(100'000, 384, options.tuning.block_bytes).bytes());
  EXPECT_EQ(backend->Plan({options.tuning.scan_rows_max, 384, Metric::kCosine}).host_bytes, 0U);
}

TEST_F(Int8BackendTest, ScansSegmentsThatAreTooSmallToPack) {
  SeededRandom random(82);
  const auto rows = UnitRows(100, 20, random);
  const auto queries = UnitRows(3, 20, random);
  Int8Options options = SmallBlocks(1);
  options.tuning.scan_rows_max = 100;
  ExpectTheScansAnswers(options, MakeSegment(rows), {queries->view(), Specs(3, 4)}, "small");
  EXPECT_THAT(Engine(0), StartsWith("scan-"));
  options.tuning.scan_rows_max = 99;
  ExpectTheScansAnswers(options, MakeSegment(rows), {queries->view(), Specs(3, 4)}, "packed");
  EXPECT_THAT(Engine(0), StartsWith("int8-"));
}

TEST_F(Int8BackendTest, HasNothingLeftToBuildForASegmentThatItScans) {
  SeededRandom random(85);
  Int8Options options = SmallBlocks(1);
  options.tuning.scan_rows_max = 100;
  const auto backend = MakeInt8Backend(options);
  const auto index = backend->MakeResident(MakeSegment(UnitRows(100, 20, random)));
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(*(*index)->Built(), 1.0);
}

// int4 is named though bytes may follow it where it drops nothing.
TEST_F(Int8BackendTest, NamesTheEngineOfOneQueryBeforeItIsAsked) {
  constexpr std::uint64_t kSeed = 91;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(700, 70, random);
  const auto queries = UnitRows(1, 70, random);
  for (const Int8Kernel* kernel : SupportedInt8Kernels()) {
    for (const std::size_t scan_rows_max : {700U, 699U}) {
      for (const std::size_t large_batch_min : {1U, 2U}) {
        Int8Options options = SmallBlocks(1, kernel->isa);
        options.tuning.scan_rows_max = scan_rows_max;
        options.tuning.large_batch_min = large_batch_min;
        const auto backend = MakeInt8Backend(options);
        const auto index = backend->MakeResident(MakeSegment(rows));
        ASSERT_TRUE(index.ok());
        ExpectTheScansAnswers(**index, MakeSegment(rows), {queries->view(), Specs(1, 5)},
                              SeedText(kSeed));
        EXPECT_EQ((*index)->engine(), Engine(0)) << kernel->isa << ", " << scan_rows_max;
      }
    }
    Int8Options options = SmallBlocks(1, kernel->isa);
    options.tuning.int4_from_code_bytes = 0;
    const auto backend = MakeInt8Backend(options);
    const auto index = backend->MakeResident(MakeSegment(rows));
    ASSERT_TRUE(index.ok());
    EXPECT_EQ((*index)->engine(),
              std::string(kernel->reads_int4 ? "int4-" : "int8-") + kernel->isa);
  }
}

TEST_F(Int8BackendTest, AnswersFromAnEmptySegmentAndToAnEmptyBatchWithNothing) {
  SeededRandom random(83);
  const auto queries = UnitRows(1, 20, random);
  const auto none = std::make_shared<PaddedRows>(0, 20);
  ExpectTheScansAnswers(SmallBlocks(1), MakeSegment(none), {queries->view(), Specs(1, 4)}, "rows");
  const auto rows = UnitRows(100, 20, random);
  ExpectTheScansAnswers(SmallBlocks(1), MakeSegment(rows), {MatrixView(nullptr, 0, 20), {}},
                        "batch");
}

// Where other queries need the pass, joining it is cheap.
TEST_F(Int8BackendTest, GathersBesideAPassOnlyWhatCostsLessThanJoiningIt) {
  constexpr std::uint64_t kSeed = 84;
  constexpr Row kRowCount = 5'000;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(kRowCount, 32, random);
  const auto queries = UnitRows(40, 32, random);
  const RowMask few = DrawRowMask(kRowCount, 100, random);
  const RowMask fewer = DrawRowMask(kRowCount, 1'000, random);
  const RowMask half = DrawRowMask(kRowCount, 2, random);
  const RowMask none(kRowCount);
  const RowMask* masks[] = {&few, &half, nullptr, &fewer, &none};
  std::vector<QuerySpec> specs = Specs(40, 10);
  for (std::size_t query = 0; query < 40; ++query) specs[query].mask = masks[query % 5];
  ExpectTheScansAnswers(SmallBlocks(2), MakeSegment(rows), {queries->view(), specs},
                        SeedText(kSeed));
  for (std::size_t query = 0; query < 40; ++query) {
    const bool selective = query % 5 >= 3;
    EXPECT_THAT(Engine(query), StartsWith(selective ? "gather-" : "int8-")) << "query " << query;
  }
}

TEST_F(Int8BackendTest, GathersWhatSavesThePass) {
  constexpr std::uint64_t kSeed = 86;
  constexpr Row kRowCount = 5'000;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(kRowCount, 32, random);
  const auto queries = UnitRows(40, 32, random);
  // One row in fifty passes each, one in sixteen may be gathered.
  std::vector<RowMask> masks;
  for (int i = 0; i < 10; ++i) masks.push_back(DrawRowMask(kRowCount, 50, random));
  std::vector<QuerySpec> specs = Specs(40, 10);
  for (const auto& [mask_count, engine] : {std::pair{std::size_t{2}, "gather-"}, {10, "int8-"}}) {
    for (std::size_t query = 0; query < 40; ++query) specs[query].mask = &masks[query % mask_count];
    ExpectTheScansAnswers(SmallBlocks(2), MakeSegment(rows), {queries->view(), specs},
                          SeedText(kSeed));
    for (std::size_t query = 0; query < 40; ++query) {
      EXPECT_THAT(Engine(query), StartsWith(engine)) << mask_count << " masks, query " << query;
    }
  }
}

// The gathered rows are scanned once for every query.
TEST_F(Int8BackendTest, JoinsThePassWhereManyQueriesShareAMask) {
  constexpr std::uint64_t kSeed = 87;
  constexpr Row kRowCount = 5'000;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(kRowCount, 32, random);
  const auto queries = UnitRows(600, 32, random);
  const RowMask most = DrawRowMask(kRowCount, 2, random);
  std::vector<QuerySpec> specs = Specs(600, 10);
  for (QuerySpec& spec : specs) spec.mask = &most;
  ExpectTheScansAnswers(SmallBlocks(2), MakeSegment(rows), {queries->view(), specs},
                        SeedText(kSeed));
  EXPECT_THAT(Engine(0), StartsWith("int8-"));
}

TEST_F(Int8BackendTest, AnswersABatchWhoseQueriesDifferInEverything) {
  constexpr std::uint64_t kSeed = 85;
  constexpr Row kFirstRow = 77;
  constexpr Row kRowCount = 3'000;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(kRowCount, 48, random);
  const auto queries = UnitRows(100, 48, random);
  const RowMask most = DrawRowMask(kFirstRow + kRowCount, 2, random);
  const RowMask few = DrawRowMask(kFirstRow + kRowCount, 50, random);
  std::vector<QuerySpec> specs = Specs(100, 1);
  std::vector<std::vector<Row>> excluded(100);
  for (std::size_t query = 0; query < 100; ++query) {
    QuerySpec& spec = specs[query];
    spec.k = std::vector<std::uint32_t>{1, 10, 100, 1'000, kRowCount, 2 * kRowCount}[query % 6];
    if (query % 4 == 1) spec.mask = &most;
    if (query % 4 == 2) spec.mask = &few;
    for (Row row = kFirstRow; query % 3 == 0 && row < kFirstRow + kRowCount; ++row) {
      if (random.OneIn(3)) excluded[query].push_back(row);
    }
    spec.excluded_rows = excluded[query];
    if (query % 5 == 0) spec.score_threshold = 0.1F;
  }
  for (const unsigned threads : {1U, 3U}) {
    ExpectTheScansAnswers(SmallBlocks(threads), MakeSegment(rows, kFirstRow),
                          {queries->view(), specs}, SeedText(kSeed));
  }
}

// Candidates of many queries at a time, and of one that has more; queries that want one hit among
// those that want many.
TEST_F(Int8BackendTest, ScoresRowByRowWhatManyQueriesWant) {
  constexpr std::uint64_t kSeed = 88;
  constexpr Row kRowCount = 10'000;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(kRowCount, 24, random);
  const auto queries = UnitRows(36, 24, random);
  const RowMask most = DrawRowMask(kRowCount, 2, random);
  std::vector<QuerySpec> specs = Specs(36, 4'000);
  for (std::size_t query = 0; query < 36; query += 7) specs[query].k = 1;
  for (std::size_t query = 0; query < 36; query += 5) specs[query].mask = &most;
  for (const std::size_t queries_of_thread_min : {1U, 256U}) {
    Int8Options options = SmallBlocks(2);
    options.tuning.block_bytes = 64U << 10;
    options.tuning.queries_of_thread_min = queries_of_thread_min;
    for (const std::size_t candidates_together : {1U, 30'000U, 1U << 20}) {
      options.row_order_hits_per_row = 1;
      options.candidates_together = candidates_together;
      ExpectTheScansAnswers(options, MakeSegment(rows), {queries->view(), specs}, SeedText(kSeed));
      EXPECT_GE(result().Cost(1).rows_rescored, 4'000U);
      EXPECT_LE(result().Cost(1).rows_rescored, kRowCount);
    }
  }
}

TEST_F(Int8BackendTest, AnswersQueriesOfZerosWithoutAPass) {
  constexpr std::uint64_t kSeed = 91;
  constexpr Row kFirstRow = 77;
  constexpr Row kRowCount = 3'000;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(kRowCount, 48, random);
  for (std::size_t row = 0; row < kRowCount; row += 3) std::ranges::fill((*rows)[row], 0.0F);
  const auto queries = UnitRows(7, 48, random);
  for (std::size_t query = 0; query < 6; ++query) std::ranges::fill((*queries)[query], -0.0F);
  const RowMask few = DrawRowMask(kFirstRow + kRowCount, 50, random);
  const std::vector<Row> excluded{0, kFirstRow, kFirstRow + 2, kFirstRow + kRowCount};
  std::vector<QuerySpec> specs = Specs(7, 10);
  specs[1].mask = &few;
  specs[2].excluded_rows = excluded;
  specs[3].score_threshold = 0;
  specs[4].score_threshold = 0x1p-149F;
  specs[5].k = 2 * kRowCount;
  ExpectTheScansAnswers(SmallBlocks(2), MakeSegment(rows, kFirstRow), {queries->view(), specs},
                        SeedText(kSeed));
  for (std::size_t query = 0; query < 6; ++query) {
    EXPECT_EQ(Engine(query), "zero-query") << query;
    EXPECT_EQ(result().Cost(query).rows_rescored, 0U) << query;
  }
  EXPECT_THAT(Engine(6), StartsWith("int8-"));
}

TEST_F(Int8BackendTest, ReturnsTenThousandHits) {
  constexpr std::uint64_t kSeed = 86;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(25'000, 24, random);
  const auto queries = UnitRows(5, 24, random);
  ExpectTheScansAnswers(SmallBlocks(2), MakeSegment(rows), {queries->view(), Specs(5, 10'000)},
                        SeedText(kSeed));
  EXPECT_EQ(result().Hits(4).size(), 10'000U);
}

TEST_F(Int8BackendTest, SearchesLargeBatchesInAsFewPassesAsTheyNeed) {
  constexpr std::uint64_t kSeed = 87;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(2'000, 16, random);
  const auto queries = UnitRows(1'200, 16, random);
  CountedKernel counted(*SupportedInt8Kernels().front());
  Int8Options options = SmallBlocks(1);
  options.large = options.small = counted.kernel();
  const auto backend = MakeInt8Backend(options);
  const auto index = backend->MakeResident(MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  for (const std::size_t batch : {1'000U, 1'024U, 1'025U, 1'200U}) {
    const std::vector<QuerySpec> specs = Specs(batch, 3);
    const std::size_t passes = counted.passes();
    ExpectTheScansAnswers(**index, MakeSegment(rows), {queries->view().Slice(0, batch), specs},
                          SeedText(kSeed));
    const std::size_t needed = batch <= 1'024 ? 1 : 2;
    EXPECT_GE(counted.passes() - passes, needed) << batch;
    EXPECT_LE(counted.passes() - passes, needed + 1) << batch << ": one more for wrong guesses";
  }
}

TEST_F(Int8BackendTest, LeavesSmallPassesToTheCallingThread) {
  constexpr std::uint64_t kSeed = 93;
  constexpr std::size_t kSearches = 300;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(1'000, 64, random);
  const auto queries = UnitRows(4, 64, random);
  CountedKernel counted(*SupportedInt8Kernels().front());
  Int8Options options = SmallBlocks(2);
  options.large = options.small = counted.kernel();
  options.small_pass_bytes = 2 * 1'024 * 64;  // 1,024 positions and, with four queries, 7/4 of that
  const auto backend = MakeInt8Backend(options);
  const auto index = backend->MakeResident(MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  const std::size_t passes_before = counted.passes();
  std::size_t passes = 0;
  for (std::size_t search = 0; search < kSearches; ++search) {
    ExpectTheScansAnswers(**index, MakeSegment(rows), {queries->view(), Specs(4, 3)},
                          SeedText(kSeed));
    std::uint32_t rescans = 0;
    for (std::size_t query = 0; query < 4; ++query) {
      rescans = std::max(rescans, static_cast<std::uint32_t>(result().Cost(query).rescans));
    }
    passes += 1 + rescans;
  }
  // A second thread that took part in any two of them would count as one more.
  EXPECT_EQ(counted.passes() - passes_before, passes);
}

// Sees on which threads canonical scores are formed. One at a time.
std::atomic<std::size_t> scores_elsewhere;
std::thread::id here;
constexpr auto kScoreScattered = [](const float* const* rows, std::size_t row_count,
                                    const float* query, std::size_t padded_dim, float* scores) {
  if (std::this_thread::get_id() != here) ++scores_elsewhere;
  certificate::SupportedCanonicalKernels().front()->score_scattered(rows, row_count, query,
                                                                    padded_dim, scores);
};

// More queries than are finished without the other threads in larger passes.
TEST_F(Int8BackendTest, FinishesSmallPassesOnTheCallingThread) {
  constexpr std::uint64_t kSeed = 94;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(1'000, 64, random);
  const auto queries = UnitRows(5, 64, random);
  Int8Options options = SmallBlocks(2);
  options.small_pass_bytes = 2 * 1'024 * 64;
  options.row_order_hits_per_row = 0;
  certificate::CanonicalKernel kernel = *options.canonical;
  kernel.score_scattered = kScoreScattered;
  options.canonical = &kernel;
  here = std::this_thread::get_id();
  scores_elsewhere = 0;
  const auto backend = MakeInt8Backend(options);
  const auto index = backend->MakeResident(MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  for (int search = 0; search < 200; ++search) {
    ExpectTheScansAnswers(**index, MakeSegment(rows), {queries->view(), Specs(5, 300)},
                          SeedText(kSeed));
  }
  EXPECT_EQ(scores_elsewhere, 0U);
}

// Only AMX leaves small batches to another kernel.
TEST(OptionsForTest, ChoosesAVectorKernelForSmallBatchesBesideAmx) {
  const Int8Options options = OptionsFor("");
  EXPECT_EQ(options.large, SupportedInt8Kernels().front());
  const bool amx = std::string(options.large->isa) == "amx";
  EXPECT_EQ(options.small, amx ? SupportedInt8Kernels()[1] : options.large);
}

TEST(IsSmallPassTest, CountsAQuarterOfTheCodesForEachQueryMore) {
  const PackedShape shape = ChooseShape(1'024, 64, 1);
  constexpr std::size_t kCodeBytes = 1'024 * 64;
  EXPECT_TRUE(IsSmallPass(shape, 1, kCodeBytes));
  EXPECT_FALSE(IsSmallPass(shape, 1, kCodeBytes - 1));
  EXPECT_TRUE(IsSmallPass(shape, 5, 2 * kCodeBytes));
  EXPECT_FALSE(IsSmallPass(shape, 6, 2 * kCodeBytes));
  EXPECT_FALSE(IsSmallPass(shape, 1, 0));
}

// A kernel whose next scan, once it is told to, waits until it is let go.
class HeldKernel {
 public:
  explicit HeldKernel(const Int8Kernel& kernel) : kernel_(kernel) {
    scan_ = kernel.scan;
    kernel_.scan = &Scan;
  }

  const Int8Kernel* kernel() const { return &kernel_; }
  static void HoldNext() { hold_ = true; }
  static void AwaitHeld() { held_.wait(false); }
  static void LetGo() {
    let_go_ = true;
    let_go_.notify_all();
  }

 private:
  static void Scan(const BlockScan& block) {
    if (hold_.exchange(false)) {
      held_ = true;
      held_.notify_all();
      let_go_.wait(false);
    }
    scan_(block);
  }

  static inline void (*scan_)(const BlockScan& block) = nullptr;
  static inline std::atomic<bool> hold_{false};
  static inline std::atomic<bool> held_{false};
  static inline std::atomic<bool> let_go_{false};
  Int8Kernel kernel_;
};

// Would never end if the two shared a lock.
TEST_F(Int8BackendTest, SearchesAsideWhileASearchRuns) {
  constexpr std::uint64_t kSeed = 94;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(1'000, 64, random);
  const auto queries = UnitRows(3, 64, random);
  const std::vector<QuerySpec> specs = Specs(3, 5);
  const HeldKernel held(*SupportedInt8Kernels().front());
  Int8Options options = SmallBlocks(2);
  options.large = options.small = held.kernel();
  const auto backend = MakeInt8Backend(options);
  const auto index = backend->MakeResident(MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  SearchResult searched;
  SearchResult aside;
  HeldKernel::HoldNext();
  std::thread search([&] {
    EXPECT_TRUE((*index)->Search({queries->view(), specs}, searched).ok());
  });
  HeldKernel::AwaitHeld();
  EXPECT_TRUE((*index)->SearchAside({queries->view(), specs}, aside).ok());
  HeldKernel::LetGo();
  search.join();
  tests::ExpectSameAnswers(aside, searched, SeedText(kSeed));
  EXPECT_STREQ(aside.Engine(0), searched.Engine(0));
}

// Every thread then scans all blocks, the first one included.
TEST_F(Int8BackendTest, DividesTheQueriesOfLargeBatchesAmongItsThreads) {
  constexpr std::uint64_t kSeed = 92;
  constexpr std::size_t kRowCount = 1'000;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(kRowCount, 64, random);
  const auto queries = UnitRows(100, 64, random);
  CountedKernel counted(*SupportedInt8Kernels().front());
  Int8Options options = SmallBlocks(2);
  options.large = options.small = counted.kernel();
  options.tuning.queries_of_thread_min = 50;
  const auto backend = MakeInt8Backend(options);
  const auto index = backend->MakeResident(MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  const auto blocks_scanned = [&](std::size_t batch) {
    const std::size_t queries_before = counted.queries();
    const std::size_t scans_before = counted.scans();
    ExpectTheScansAnswers(**index, MakeSegment(rows),
                          {queries->view().Slice(0, batch), Specs(batch, 3)}, SeedText(kSeed));
    EXPECT_EQ(counted.queries() - queries_before, batch);
    // The first block, of 64 rows, is scanned once for every four queries.
    return counted.scans() - scans_before - (batch + 3) / 4;
  };
  EXPECT_EQ(blocks_scanned(100), 2 * (kRowCount - 1) / 64);
  EXPECT_EQ(Engine(0), "int8-" + std::string(options.large->isa));
}

TEST_F(Int8BackendTest, SplitsABatchWhoseCandidatesNeedTooMuchMemory) {
  constexpr std::uint64_t kSeed = 88;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(21'000, 8, random);
  // 20,000 candidates of twelve bytes for each of 1,200 queries exceed 256 MiB.
  const auto queries = UnitRows(1'200, 8, random);
  std::vector<QuerySpec> specs = Specs(1'200, 10'000);
  for (QuerySpec& spec : specs) spec.score_threshold = 0.9F;  // so that there is little to compare
  ExpectTheScansAnswers(SmallBlocks(1), MakeSegment(rows), {queries->view(), specs},
                        SeedText(kSeed));
}

}  // namespace
}  // namespace simile::backend::cpu

// Data on which guessed gates are wrong, and data whose scores are equal or nearly so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backend/counted_kernel.h"
#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/packed_codes.h"
#include "backend/int8_fixture.h"
#include "backend/small_blocks.h"

namespace simile::backend::cpu {
namespace {

using tests::CountedKernel;
using tests::MakeSegment;
using tests::PaddedRows;
using tests::ScaleTo;
using tests::SeededRandom;
using tests::SmallBlocks;
using tests::Specs;
using tests::UnitRows;

class Int8GuessTest : public tests::Int8Fixture {
 protected:
  //   hits_per_row  Int8Options::row_order_hits_per_row
  void ExpectRescansOfWrongGuesses(std::size_t hits_per_row);
};

constexpr std::size_t kRowCount = 4'096;
constexpr std::size_t kDim = 64;

// Unit rows whose best for the query (1, 0, 0, ...) all lie in the chunk that is scanned first. The
// shuffled order depends on the number of rows alone, so that building it once reveals it.
std::shared_ptr<PaddedRows> RowsAgainstTheShuffle(SeededRandom& random) {
  auto rows = UnitRows(kRowCount, kDim, random);
  const PackedShape shape = ChooseShape(kRowCount, kDim, 1);
  PackedRows::Progress progress;
  const auto packed = PackedRows::Build(rows->view(), shape, 1, progress);
  const std::size_t first_chunk = shape.chunk_blocks * shape.block_rows;
  for (std::size_t position = 0; position < kRowCount; ++position) {
    const std::span<float> row = (*rows)[packed->IndexAt(position)];
    row[0] = 0;
    ScaleTo(row, 1);
    const bool high = position < first_chunk;
    const float share = high ? 0.5F + 0.4F * std::fabs(random.Signed()) : 0.1F * random.Signed();
    for (float& value : row) value *= std::sqrt(1 - share * share);
    row[0] = share;
  }
  return rows;
}

void Int8GuessTest::ExpectRescansOfWrongGuesses(std::size_t hits_per_row) {
  constexpr std::uint64_t kSeed = 91;
  SeededRandom random(kSeed);
  const auto rows = RowsAgainstTheShuffle(random);
  PaddedRows queries(20, kDim);
  for (std::size_t query = 0; query < 20; ++query) {
    // Every other query is an ordinary one, whose guess is right.
    for (float& value : queries[query]) value = query % 2 == 0 ? 0 : random.Signed();
    if (query % 2 == 0) queries[query][0] = 1;
    ScaleTo(queries[query], 1);
  }
  const std::vector<QuerySpec> specs = Specs(20, 100);
  CountedKernel counted(*SupportedInt8Kernels().front());
  Int8Options options = SmallBlocks(1);
  options.large = options.small = counted.kernel();
  options.row_order_hits_per_row = hits_per_row;
  const auto backend = MakeInt8Backend(options);
  const auto index = backend->MakeResident(MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  const std::size_t passes = counted.passes();
  const std::size_t scanned_for = counted.queries();
  ExpectTheScansAnswers(**index, MakeSegment(rows), {queries.view(), specs},
                        "seed " + std::to_string(kSeed));
  EXPECT_EQ(counted.passes() - passes, 2U) << "one pass that guesses, one that does not";
  EXPECT_GE(counted.queries() - scanned_for, 30U) << "all queries, then those that guessed wrong";
  EXPECT_LT(counted.queries() - scanned_for, 40U) << "and not the others";
  std::size_t rescans = 0;
  for (std::size_t query = 0; query < 20; ++query) {
    const QueryCost& cost = result().Cost(query);
    rescans += cost.rescans;
    EXPECT_EQ(cost.rows_scanned, (1 + cost.rescans) * kRowCount) << query;
  }
  EXPECT_EQ(rescans, counted.queries() - scanned_for - 20);
}

TEST_F(Int8GuessTest, RescansWithProvenGatesWhenAGuessWasWrong) {
  ExpectRescansOfWrongGuesses(kRowCount);
}

TEST_F(Int8GuessTest, RescansWhatWasScoredRowByRow) { ExpectRescansOfWrongGuesses(0); }

// Neighbours of similar scale are packed into the same block of a chunk, so that the rows seen
// before a chunk ends are not a random sample.
TEST_F(Int8GuessTest, GuessesCorrectlyWhereNeighboursShareABlock) {
  constexpr std::uint64_t kSeed = 96;
  constexpr std::size_t kClusters = 100;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(40'000, kDim, random);
  for (std::size_t r = kClusters; r < rows->row_count(); ++r) {
    for (std::size_t i = 0; i < kDim; ++i)
      (*rows)[r][i] = (*rows)[r % kClusters][i] + (*rows)[r][i] * 0.05F;
    ScaleTo((*rows)[r], 1);
  }
  CountedKernel counted(*SupportedInt8Kernels().front());
  Int8Options options = SmallBlocks(1);
  options.tuning.block_bytes = 64 << 10;
  options.large = options.small = counted.kernel();
  const auto backend = MakeInt8Backend(options);
  const auto index = backend->MakeResident(MakeSegment(rows));
  ASSERT_TRUE(index.ok());
  for (const std::uint32_t k : {10U, 100U, 1'000U}) {
    const std::size_t scanned_for = counted.queries();
    const std::vector<QuerySpec> specs = Specs(500, k);
    ExpectTheScansAnswers(**index, MakeSegment(rows), {rows->view().Slice(0, 500), specs},
                          "seed " + std::to_string(kSeed) + ", k " + std::to_string(k));
    EXPECT_LE(counted.queries() - scanned_for, 502U) << "k " << k;
  }
}

TEST_F(Int8GuessTest, AnswersFromRowsAgainstTheShuffleWithAnyNumberOfThreads) {
  constexpr std::uint64_t kSeed = 92;
  SeededRandom random(kSeed);
  const auto rows = RowsAgainstTheShuffle(random);
  PaddedRows query(1, kDim);
  query[0][0] = 1;
  for (const unsigned threads : {1U, 2U, 3U, 7U}) {
    for (const std::uint32_t k : {1U, 10U, 100U, 1'000U, 4'096U}) {
      ExpectTheScansAnswers(SmallBlocks(threads), MakeSegment(rows), {query.view(), Specs(1, k)},
                            std::to_string(threads) + " threads, k " + std::to_string(k));
    }
  }
}

TEST_F(Int8GuessTest, AnswersWhereAllScoresAreEqual) {
  constexpr std::uint64_t kSeed = 93;
  SeededRandom random(kSeed);
  const auto one = UnitRows(1, kDim, random);
  const auto rows = std::make_shared<PaddedRows>(kRowCount, kDim);
  for (std::size_t r = 0; r < kRowCount; ++r) std::ranges::copy((*one)[0], (*rows)[r].begin());
  auto queries = UnitRows(17, kDim, random);
  std::ranges::copy((*one)[0], (*queries)[3].begin());
  for (const unsigned threads : {1U, 2U}) {
    for (const std::uint32_t k : {1U, 50U, 1'000U, 4'096U}) {
      ExpectTheScansAnswers(SmallBlocks(threads), MakeSegment(rows),
                            {queries->view(), Specs(17, k)},
                            "seed " + std::to_string(kSeed) + ", k " + std::to_string(k));
      ASSERT_EQ(result().Hits(0).back().row, k - 1) << "ties go to the lower row";
    }
  }
}

TEST_F(Int8GuessTest, AnswersWhereThousandsOfScoresAreNearlyEqual) {
  constexpr std::uint64_t kSeed = 94;
  SeededRandom random(kSeed);
  const auto one = UnitRows(1, kDim, random);
  const auto rows = std::make_shared<PaddedRows>(kRowCount, kDim);
  for (std::size_t r = 0; r < kRowCount; ++r) {
    for (std::size_t i = 0; i < kDim; ++i)
      (*rows)[r][i] = (*one)[0][i] * (1 + random.Signed() * 0x1p-21F);
  }
  const auto queries = UnitRows(33, kDim, random);
  for (const std::uint32_t k : {1U, 10U, 300U, 4'096U}) {
    ExpectTheScansAnswers(SmallBlocks(2), MakeSegment(rows), {queries->view(), Specs(33, k)},
                          "seed " + std::to_string(kSeed) + ", k " + std::to_string(k));
  }
}

TEST_F(Int8GuessTest, AnswersWhereNormsSpreadOverTheirWholeRange) {
  constexpr std::uint64_t kSeed = 95;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(kRowCount, kDim, random);
  for (std::size_t r = 0; r < kRowCount; ++r)
    ScaleTo((*rows)[r], std::ldexp(1.0, static_cast<int>(random.Below(119)) - 59));
  const auto queries = UnitRows(33, kDim, random);
  for (std::size_t q = 0; q < 33; ++q)
    ScaleTo((*queries)[q], std::ldexp(1.0, static_cast<int>(random.Below(119)) - 59));
  for (const std::uint32_t k : {1U, 10U, 300U, 4'096U}) {
    ExpectTheScansAnswers(SmallBlocks(2), MakeSegment(rows), {queries->view(), Specs(33, k)},
                          "seed " + std::to_string(kSeed) + ", k " + std::to_string(k));
  }
}

// The same attacks on the smallest batches, which read int4 where that pays.
TEST_F(Int8GuessTest, AnswersFromInt4UnderAttack) {
  constexpr std::uint64_t kSeed = 97;
  SeededRandom random(kSeed);
  const auto against = RowsAgainstTheShuffle(random);
  const auto equal = std::make_shared<PaddedRows>(kRowCount, kDim);
  const auto near = std::make_shared<PaddedRows>(kRowCount, kDim);
  const auto spread = UnitRows(kRowCount, kDim, random);
  const auto one = UnitRows(1, kDim, random);
  for (std::size_t r = 0; r < kRowCount; ++r) {
    std::ranges::copy((*one)[0], (*equal)[r].begin());
    for (std::size_t i = 0; i < kDim; ++i)
      (*near)[r][i] = (*one)[0][i] * (1 + random.Signed() * 0x1p-21F);
    ScaleTo((*spread)[r], std::ldexp(1.0, static_cast<int>(random.Below(119)) - 59));
  }
  const auto queries = UnitRows(3, kDim, random);
  std::ranges::fill((*queries)[1], 0.0F);
  (*queries)[1][0] = 1;
  std::ranges::copy((*one)[0], (*queries)[2].begin());

  std::size_t rescans = 0;
  for (const Int8Kernel* kernel : SupportedInt8Kernels()) {
    if (!kernel->reads_int4) continue;
    CountedKernel counted(*kernel);
    for (const unsigned threads : {1U, 2U}) {
      Int8Options options = SmallBlocks(threads, kernel->isa);
      options.tuning.int4_from_code_bytes = 0;
      options.large = options.small = counted.kernel();
      for (const auto& rows : {against, equal, near, spread}) {
        for (const std::uint32_t k : {1U, 10U, 100U, 4'096U}) {
          ExpectTheScansAnswers(options, MakeSegment(rows), {queries->view(), Specs(3, k)},
                                kernel->isa);
          rescans += result().Cost(1).rescans;
        }
      }
    }
    EXPECT_GT(counted.int4_scans(), 0U) << kernel->isa;
  }
  EXPECT_GT(rescans, 0U) << "no guess was wrong";
}

}  // namespace
}  // namespace simile::backend::cpu

#include "backend/cpu/packed_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cpu/int8_kernel.h"
#include "backend/segments.h"
#include "certificate/exact_rotation.h"
#include "certificate/quantizer.h"

namespace simile::backend::cpu {
namespace {

using certificate::kByteCodeMax;
using tests::ExactLength;
using tests::ExactRotation;
using tests::PaddedRows;
using tests::ScaleTo;
using tests::SeededRandom;
using tests::UnitRows;

std::unique_ptr<const PackedRows> BuildRows(const PaddedRows& rows, std::size_t block_bytes,
                                            unsigned threads = 1) {
  PackedRows::Progress progress;
  PackedShape shape = ChooseShape(rows.row_count(), rows.dim(), block_bytes);
  shape.has_int4 = true;
  return PackedRows::Build(rows.view(), shape, threads, progress);
}

constexpr CodeWidth kWidths[] = {CodeWidth::kByte, CodeWidth::kInt4};

// The code of a column of the row at a position.
std::int32_t CodeAt(const PackedRows& packed, CodeWidth width, std::size_t position,
                    std::size_t column) {
  const std::size_t block_rows = packed.shape().block_rows;
  const std::size_t row = position % block_rows;
  const std::uint8_t* codes = packed.CodesOfBlock(width, position / block_rows);
  const std::size_t group = row / kGroupRows * kGroupRows * packed.shape().rotated_dim;
  if (width == CodeWidth::kInt4) {
    const std::uint8_t two = codes[group / 2 + column / 8 * 64 + row % kGroupRows * 4 + column % 4];
    const std::size_t int4 = column % 8 < 4 ? two & 15U : two >> 4U;
    return packed.int4_bytes()[int4] - (kByteCodeMax + 1);
  }
  return codes[group + column / 4 * 64 + row % kGroupRows * 4 + column % 4] - (kByteCodeMax + 1);
}

TEST(PackedRowsTest, HoldsEveryRowExactlyOnce) {
  constexpr std::uint64_t kSeed = 51;
  SeededRandom random(kSeed);
  for (const std::size_t row_count : {1U, 15U, 16U, 17U, 63U, 64U, 65U, 1'000U, 1'025U, 9'999U}) {
    const auto rows = UnitRows(row_count, 20, random);
    for (const std::size_t block_bytes : {1U, 16U << 10, 384U << 10}) {
      const auto packed = BuildRows(*rows, block_bytes);
      const PackedShape& shape = packed->shape();
      ASSERT_EQ(shape.position_count(), (row_count + 63) / 64 * 64);
      std::vector<int> seen(row_count, 0);
      for (std::size_t position = 0; position < shape.position_count(); ++position) {
        const std::uint32_t index = packed->IndexAt(position);
        if (position >= row_count) {
          ASSERT_EQ(index, PackedRows::kNoRow) << row_count << " rows, position " << position;
        } else {
          ASSERT_LT(index, row_count) << row_count << " rows, position " << position;
          ++seen[index];
        }
      }
      ASSERT_EQ(std::ranges::count(seen, 1), static_cast<std::ptrdiff_t>(row_count));
      std::size_t rows_of_blocks = 0;
      for (std::size_t block = 0; block < shape.block_count(); ++block) {
        ASSERT_EQ(packed->RowsOfBlock(block) % 64, 0U);
        ASSERT_LE(packed->RowsOfBlock(block), shape.block_rows);
        rows_of_blocks += packed->RowsOfBlock(block);
      }
      ASSERT_EQ(rows_of_blocks, shape.position_count());
    }
  }
}

TEST(PackedRowsTest, IsTheSameWhateverTheNumberOfThreads) {
  constexpr std::uint64_t kSeed = 52;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(20'011, 70, random);
  const auto one = BuildRows(*rows, 16 << 10, 1);
  const std::size_t bytes = one->shape().position_count() * one->shape().rotated_dim;
  for (const unsigned threads : {2U, 5U}) {
    const auto more = BuildRows(*rows, 16 << 10, threads);
    for (std::size_t position = 0; position < one->shape().position_count(); ++position) {
      ASSERT_EQ(one->IndexAt(position), more->IndexAt(position)) << threads;
      ASSERT_EQ(one->Int4Residual(position), more->Int4Residual(position)) << threads;
    }
    for (const CodeWidth width : kWidths) {
      ASSERT_EQ(std::memcmp(one->CodesOfBlock(width, 0), more->CodesOfBlock(width, 0),
                            bytes / (width == CodeWidth::kByte ? 1 : 2)),
                0)
          << threads;
      for (std::size_t block = 0; block < one->shape().block_count(); ++block) {
        const PackedRows::Block& a = one->block(width, block);
        const PackedRows::Block& b = more->block(width, block);
        ASSERT_TRUE(a.scale == b.scale && a.norms.length == b.norms.length &&
                    a.norms.residual == b.norms.residual && a.norms.decoded == b.norms.decoded)
            << threads << " threads, block " << block;
      }
    }
  }
}

TEST(PackedRowsTest, ShufflesTheRows) {
  constexpr std::uint64_t kSeed = 53;
  constexpr std::size_t kRowCount = 10'000;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(kRowCount, 8, random);
  const auto packed = BuildRows(*rows, 4 << 10);
  // Of the first tenth of the positions about a tenth comes from each tenth of the rows.
  std::vector<int> from(10, 0);
  for (std::size_t position = 0; position < kRowCount / 10; ++position)
    ++from[packed->IndexAt(position) / (kRowCount / 10)];
  for (const int count : from) EXPECT_NEAR(count, 100, 60);
}

// Checks the bounds of a block against the exact rotation of each of its rows.
void ExpectBounds(const PaddedRows& rows, const PackedRows& packed, CodeWidth width,
                  const ExactRotation& rotation) {
  for (std::size_t position = 0; position < rows.row_count(); ++position) {
    const std::span<const float> row = rows[packed.IndexAt(position)];
    const PackedRows::Block& block = packed.block(width, position / packed.shape().block_rows);
    const std::vector<long double> exact = rotation.Apply(row);
    long double residual = 0;
    long double decoded = 0;
    for (std::size_t column = 0; column < exact.size(); ++column) {
      const std::int32_t code = CodeAt(packed, width, position, column);
      ASSERT_LE(std::abs(code), kByteCodeMax) << "position " << position;
      const long double back = static_cast<long double>(block.scale) * code;
      residual += (exact[column] - back) * (exact[column] - back);
      decoded += back * back;
    }
    ASSERT_LE(ExactLength(row), static_cast<long double>(block.norms.length));
    ASSERT_LE(std::sqrt(residual), static_cast<long double>(block.norms.residual));
    if (width == CodeWidth::kInt4) {
      ASSERT_LE(std::sqrt(residual), static_cast<long double>(packed.Int4Residual(position)));
    }
    ASSERT_LE(std::sqrt(decoded), static_cast<long double>(block.norms.decoded));
  }
}

TEST(PackedRowsTest, BoundsEveryRowOfABlock) {
  constexpr std::uint64_t kSeed = 54;
  SeededRandom random(kSeed);
  for (const std::size_t dim : {1U, 33U, 64U, 100U, 192U}) {
    const ExactRotation rotation{certificate::Rotation(dim)};
    for (const bool wild : {false, true}) {
      const auto rows = UnitRows(dim > 100 ? 700 : 1'500, dim, random);
      for (std::size_t r = 0; wild && r < rows->row_count(); ++r) {
        ScaleTo((*rows)[r], std::ldexp(1.0, static_cast<int>(random.Below(119)) - 59));
        if (random.OneIn(4)) (*rows)[r][0] = random.Subnormal() + (*rows)[r][0];
        // Enough of them for a block that has no others.
        if (random.OneIn(3)) std::ranges::fill((*rows)[r], 0.0F);
      }
      const auto packed = BuildRows(*rows, 8 << 10);
      for (const CodeWidth width : kWidths) ExpectBounds(*rows, *packed, width, rotation);
      ASSERT_FALSE(HasFatalFailure()) << "seed " << kSeed << ", dim " << dim << ", wild " << wild;
    }
  }
}

TEST(PackedRowsTest, LosesLittleOfUnitRows) {
  constexpr std::uint64_t kSeed = 55;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(4'000, 384, random);
  const auto packed = BuildRows(*rows, 384 << 10);
  for (std::size_t block = 0; block < packed->shape().block_count(); ++block) {
    EXPECT_LT(packed->block(CodeWidth::kByte, block).norms.residual, 0.012) << block;
    EXPECT_NEAR(packed->block(CodeWidth::kByte, block).norms.length, 1, 1e-5) << block;
  }
  double residuals = 0;
  for (std::size_t position = 0; position < 4'000; ++position)
    residuals += static_cast<double>(packed->Int4Residual(position));
  EXPECT_NEAR(residuals / 4'000, 0.097, 0.002);
}

TEST(PackedRowsTest, CountsItsChunks) {
  constexpr std::uint64_t kSeed = 56;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(5'000, 64, random);
  PackedRows::Progress progress;
  const PackedShape shape = ChooseShape(5'000, 64, 4 << 10);
  ASSERT_NE(PackedRows::Build(rows->view(), shape, 2, progress), nullptr);
  EXPECT_EQ(progress.chunks_done, shape.chunk_count());
}

TEST(PackedRowsTest, IsNotBuiltWhenCancelled) {
  constexpr std::uint64_t kSeed = 57;
  SeededRandom random(kSeed);
  const auto rows = UnitRows(5'000, 64, random);
  PackedRows::Progress progress;
  progress.cancelled = true;
  EXPECT_EQ(PackedRows::Build(rows->view(), ChooseShape(5'000, 64, 4 << 10), 2, progress), nullptr);
  EXPECT_EQ(progress.chunks_done, 0U);
}

constexpr std::size_t kBlockBytes = 384 << 10;

double BytesPerDim(std::size_t row_count, std::size_t dim, bool has_int4 = false) {
  PackedShape shape = ChooseShape(row_count, dim, kBlockBytes);
  shape.has_int4 = has_int4;
  return static_cast<double>(shape.bytes()) /
         (static_cast<double>(row_count) * static_cast<double>(dim));
}

TEST(PackedShapeTest, NeedsLittleMoreThanAByteADimension) {
  EXPECT_LE(BytesPerDim(1'000'000, 384), 1.05);
  EXPECT_LE(BytesPerDim(1'000'000, 128), 1.05);
  EXPECT_LE(BytesPerDim(200'000, 1'536), 1.05);
  EXPECT_LE(BytesPerDim(62'423, 384), 1.10);  // rounding to huge pages weighs more on few rows
  EXPECT_LE(BytesPerDim(1'000'000, 384, true), 1.55);
}

// Four bytes a row beside the codes, which are padded to steps of 64, and up to 2% for rounding to
// huge pages.
TEST(PackedShapeTest, IncludesThePaddingToWholeSteps) {
  struct Cost {
    std::size_t dim;
    double bytes_per_row;
  };
  for (const Cost& cost : {Cost{1, 68}, {63, 68}, {64, 68}, {65, 132}, {100, 132}, {300, 324}}) {
    const double expected = cost.bytes_per_row / static_cast<double>(cost.dim);
    EXPECT_GE(BytesPerDim(1'000'000, cost.dim), expected) << cost.dim;
    EXPECT_LE(BytesPerDim(1'000'000, cost.dim), expected * 1.02) << cost.dim;
  }
}

TEST(PackedShapeTest, CutsRowsIntoBlocksAndChunksWithoutGaps) {
  for (const std::size_t row_count : {1U, 64U, 65U, 4'000U, 62'423U, 1'000'000U}) {
    for (const std::size_t dim : {1U, 64U, 384U, 4'096U}) {
      for (const std::size_t block_bytes : {std::size_t{1}, kBlockBytes, std::size_t{64} << 20}) {
        const PackedShape shape = ChooseShape(row_count, dim, block_bytes);
        ASSERT_EQ(shape.block_rows % 64, 0U);
        ASSERT_GE(shape.block_rows, 64U);
        ASSERT_GE(shape.chunk_blocks, 1U);
        ASSERT_GE(shape.block_count() * shape.block_rows, row_count);
        ASSERT_LT((shape.block_count() - 1) * shape.block_rows, row_count);
        ASSERT_LT((shape.chunk_count() - 1) * shape.chunk_blocks, shape.block_count());
        if (shape.block_rows > 64) {
          ASSERT_LE(shape.block_rows * shape.rotated_dim, block_bytes);
        }
      }
    }
  }
}

using tests::PaddedRows;
using tests::ScaleTo;
using tests::SeededRandom;
using tests::UnitRows;

constexpr std::uint64_t kSeed = 71;

// Of Int8Kernel::four_columns_max: the AVX2 kernel's, a smaller one, and none.
constexpr std::int32_t kLimits[] = {128, 40, 0};

// Random vectors, and rotated one-hot ones, whose second rotation is less even than usual.
void DrawQuery(std::span<float> query, const certificate::Rotation& rotation,
               SeededRandom& random) {
  for (float& value : query) value = random.Signed();
  if (random.OneIn(2)) {
    std::vector<float> one_hot(rotation.rotated_dim());
    std::vector<float> spare(rotation.rotated_dim());
    one_hot[random.Below(one_hot.size())] = 1;
    rotation.Rotate<1>(one_hot.data(), spare.data());
    std::copy_n(one_hot.begin(), query.size(), query.begin());
  }
  ScaleTo(query, std::ldexp(1.0, static_cast<int>(random.Below(100)) - 50));
}

// The greatest sum that a kernel's limit is about.
//   codes  as PackedQueries packs those of the first query
std::int32_t GreatestOfFourColumns(const std::int8_t* codes, std::size_t rotated_dim) {
  std::int32_t greatest = 0;
  for (std::size_t first = 0; first < rotated_dim; first += 8) {
    const std::int8_t* eight = codes + first / 64 * kTileQueries * 64 + first % 64;
    std::int32_t positive[2] = {};
    std::int32_t negative[2] = {};
    for (std::size_t i = 0; i < 8; ++i)
      (eight[i] > 0 ? positive : negative)[WhichFour(i)] += std::abs(eight[i]);
    greatest = std::max({greatest, positive[0], positive[1], negative[0], negative[1]});
  }
  return greatest;
}

TEST(PackedQueriesTest, KeepsFourColumnsWithinTheLimitOfTheKernel) {
  SeededRandom random(kSeed);
  for (const std::size_t dim : {3U, 64U, 100U, 384U}) {
    const auto rows = UnitRows(64, dim, random);
    PackedRows::Progress progress;
    const auto packed = PackedRows::Build(rows->view(), ChooseShape(64, dim, 1), 1, progress);
    for (const std::int32_t limit : kLimits) {
      PackedQueries queries;
      queries.Reset(*packed, limit, 1);
      PackedQueries::Scratch scratch;
      PackedQueries::Reserve(*packed, scratch);
      std::int32_t greatest = 0;
      for (int round = 0; round < 500; ++round) {
        PaddedRows query(1, dim);
        DrawQuery(query[0], packed->rotation(), random);
        queries.Pack(*packed, 0, query.view().data(), query.view().padded_dim(), scratch);
        greatest = std::max(greatest,
                            GreatestOfFourColumns(queries.codes(0), packed->shape().rotated_dim));
      }
      const std::string what = "dim " + std::to_string(dim) + ", seed " + std::to_string(kSeed);
      if (limit == 0) {
        EXPECT_GT(greatest, 128) << what;
      } else {
        EXPECT_LE(greatest, limit) << what;
        EXPECT_GE(greatest, limit * 9 / 10) << what << ": more is lost than needed";
      }
    }
  }
}

}  // namespace
}  // namespace simile::backend::cpu

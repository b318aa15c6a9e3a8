#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "certificate/canonical_score.h"
#include "certificate/padded_rows.h"
#include "certificate/pair_battery.h"
#include "certificate/seeded_random.h"

namespace simile::certificate {
namespace {

constexpr std::uint64_t kSeed = 20'240'501;
constexpr std::size_t kPairs = 1'000'000;

// Every instruction set by name; one that this processor lacks is skipped.
class CanonicalKernelTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    kernel_ = FindCanonicalKernel(GetParam());
    if (kernel_ == nullptr) GTEST_SKIP() << "this processor cannot run " << GetParam();
    ASSERT_EQ(kernel_->isa, GetParam());
  }
  const CanonicalKernel* kernel_ = nullptr;
};

TEST_P(CanonicalKernelTest, HasTheReferencesBitsOnAMillionPairs) {
  ::simile::tests::ExpectReferenceBits(*kernel_, kSeed, kPairs);
}

TEST_P(CanonicalKernelTest, ScoresBlocksLargerThanItsTilesAndStrips) {
  ::simile::tests::SeededRandom random(kSeed);
  for (const std::size_t dim : {1U, 31U, 32U, 33U, 384U, 1025U}) {
    for (const std::size_t row_count : {1U, 3U, 4U, 5U, 65U}) {
      for (const std::size_t query_count : {1U, 2U, 3U, 4U, 17U}) {
        ::simile::tests::PaddedRows rows(row_count, dim);
        ::simile::tests::PaddedRows queries(query_count, dim);
        for (auto* matrix : {&rows, &queries}) {
          for (std::size_t r = 0; r < matrix->row_count(); ++r) {
            for (float& value : (*matrix)[r]) value = random.Signed();
          }
        }
        // One float more than needed, which must stay unchanged.
        std::vector<float> scores(row_count * query_count + 1, 7.0F);
        kernel_->score_block(rows.view().data(), row_count, queries.view().data(), query_count,
                             rows.view().padded_dim(), scores.data());
        ASSERT_EQ(scores.back(), 7.0F) << "dim " << dim << ", " << row_count << " rows";
        for (std::size_t q = 0; q < query_count; ++q) {
          for (std::size_t r = 0; r < row_count; ++r) {
            ASSERT_EQ(scores[q * row_count + r],
                      CanonicalScoreReference(rows.view()[r], queries.view()[q]))
                << "dim " << dim << ", row " << r << " of " << row_count << ", query " << q
                << " of " << query_count;
          }
        }
      }
    }
  }
}

TEST_P(CanonicalKernelTest, ScoresScatteredRowsOfAnyNumber) {
  ::simile::tests::SeededRandom random(kSeed);
  for (const std::size_t dim : {1U, 32U, 33U, 384U}) {
    ::simile::tests::PaddedRows rows(20, dim);
    ::simile::tests::PaddedRows query(1, dim);
    for (float& value : query[0]) value = random.Signed();
    for (std::size_t r = 0; r < rows.row_count(); ++r) {
      for (float& value : rows[r]) value = random.Signed();
    }
    for (std::size_t count = 0; count <= 9; ++count) {
      std::vector<const float*> places(count);
      std::vector<std::size_t> chosen(count);
      for (std::size_t i = 0; i < count; ++i) {
        chosen[i] = random.Below(rows.row_count());
        places[i] = rows.view().PaddedRow(chosen[i]);
      }
      std::vector<float> scores(count + 1, 7.0F);
      kernel_->score_scattered(places.data(), count, query.view().data(), rows.view().padded_dim(),
                               scores.data());
      ASSERT_EQ(scores.back(), 7.0F) << "dim " << dim << ", " << count << " rows";
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(scores[i], CanonicalScoreReference(rows.view()[chosen[i]], query.view()[0]))
            << "seed " << kSeed << ", dim " << dim << ", row " << i << " of " << count;
      }
    }
  }
}

TEST_P(CanonicalKernelTest, NeverReturnsNegativeZero) {
  // Every product rounds to -0 in its lane, and lanes of -0 leave their sum at -0.
  constexpr std::size_t kRows = 7;  // whole tiles and streams, and a remainder
  ::simile::tests::PaddedRows rows(kRows, kLaneCount);
  for (std::size_t r = 0; r < kRows; ++r) std::ranges::fill(rows[r], -0x1p-100F);
  for (const std::size_t query_count : {1U, 2U, 3U, 4U}) {
    ::simile::tests::PaddedRows queries(query_count, kLaneCount);
    for (std::size_t q = 0; q < query_count; ++q) std::ranges::fill(queries[q], 0x1p-100F);
    std::vector<float> scores(kRows * query_count, -1.0F);
    kernel_->score_block(rows.view().data(), kRows, queries.view().data(), query_count, kLaneCount,
                         scores.data());
    for (const float score : scores) EXPECT_EQ(std::bit_cast<std::uint32_t>(score), 0U);
  }
}

TEST_P(CanonicalKernelTest, RoundsOnceWhereRoundingTwiceDiffers) {
  // To a lane at 1 + odd * 2^-23, slightly less than half a unit in the last place is added or
  // subtracted. Rounded to double first, that is the midpoint of two floats, and rounding again
  // goes to the even one; rounded once, the lane stays.
  constexpr float kAlmostHalf = 1 - 0x1p-23F;  // times 1 + 2^-23 is 1 - 2^-46
  for (const float lane_sign : {1.0F, -1.0F}) {
    for (const float step_sign : {1.0F, -1.0F}) {
      for (const float scale : {0x1p-40F, 1.0F, 0x1p40F}) {
        const float lane = lane_sign * (1 + 5 * 0x1p-23F) * scale;
        ::simile::tests::PaddedRows row(1, 2 * kLaneCount);
        ::simile::tests::PaddedRows query(1, 2 * kLaneCount);
        row[0][0] = lane;
        query[0][0] = 1;
        row[0][kLaneCount] = step_sign * kAlmostHalf;
        query[0][kLaneCount] = (1 + 0x1p-23F) * 0x1p-24F * scale;
        float score = 0;
        kernel_->score_block(row.view().data(), 1, query.view().data(), 1, 2 * kLaneCount, &score);
        EXPECT_EQ(score, lane) << "signs " << lane_sign << " " << step_sign << ", scale " << scale;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, CanonicalKernelTest,
                         ::testing::Values("avx512", "avx2", "neon", "portable"),
                         [](const auto& test) { return std::string(test.param); });

TEST(CanonicalKernelTableTest, EndsWithPortable) {
  ASSERT_FALSE(SupportedCanonicalKernels().empty());
  EXPECT_EQ(SupportedCanonicalKernels().back()->isa, "portable");
}

TEST(CanonicalKernelTableTest, FindsNothingUnderAnotherName) {
  EXPECT_EQ(FindCanonicalKernel("sse9"), nullptr);
  EXPECT_EQ(FindCanonicalKernel(""), nullptr);
}

}  // namespace
}  // namespace simile::certificate

#include "data/formats/equal_rows.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "simile/matrix_view.h"

namespace simile::data {
namespace {

constexpr std::size_t kDim = 19;

EqualGroup FindLargest(const std::vector<std::vector<double>>& rows) {
  const std::vector<double> weights = MakeColumnWeights(kDim);
  EqualRows equal(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    equal.Add(static_cast<Row>(row), SumRow(rows[row], weights));
  }
  return equal.Largest();
}

TEST(EqualRowsTest, FindsTheLargestGroup) {
  std::vector<std::vector<double>> rows;
  std::mt19937 random(7);
  std::normal_distribution<float> number;
  for (int row = 0; row < 5'000; ++row) {
    std::vector<double>& values = rows.emplace_back(kDim);
    for (double& value : values) value = number(random);
  }
  EXPECT_EQ(FindLargest(rows).count, 1U);
  for (std::size_t row = 4'000; row < 4'100; ++row) rows[row] = rows[3'999];
  for (std::size_t row = 1'000; row < 2'500; ++row) rows[row] = rows[12];
  const EqualGroup largest = FindLargest(rows);
  EXPECT_EQ(largest.count, 1'501U);
  EXPECT_EQ(largest.first_row, 12U);
  EXPECT_TRUE(largest.is_exact);
}

// Each pair has the same length, the same numbers or nearly the same.
TEST(EqualRowsTest, TellsRowsThatAreAlikeApart) {
  std::vector<std::vector<double>> rows(2 * kDim, std::vector<double>(kDim, 0));
  for (std::size_t at = 0; at < kDim; ++at) {
    rows[at][at] = 1;
    rows[kDim + at][at] = -1;
  }
  rows.emplace_back(kDim, 1);
  rows.emplace_back(kDim, 1)[3] = static_cast<double>(1.0F + 0x1p-23F);
  EXPECT_EQ(FindLargest(rows).count, 1U);
}

TEST(EqualRowsTest, KeepsAFrequentVectorAmongManyRareOnes) {
  constexpr Row kRows = 400'000;
  EqualRows equal(kRows);
  for (Row row = 0; row < kRows; ++row) {
    const double own = row % 100 == 50 ? -1 : row;
    equal.Add(row, {.squares = own, .weighted = 2 * own});
  }
  const EqualGroup largest = equal.Largest();
  EXPECT_FALSE(largest.is_exact);
  EXPECT_LE(largest.count, 4'000U);
  EXPECT_GE(largest.count, 3'900U);
  EXPECT_EQ(largest.first_row % 100, 50U);
}

TEST(EqualRowsTest, SaysWhatAnOwnerShouldKnow) {
  EXPECT_EQ(EqualRowsText({.count = 1'500, .first_row = 12}, 5'000),
            "1,500 rows share one vector, the first is row 12; a search returns them in row order");
  EXPECT_EQ(EqualRowsText({.count = 1'500, .first_row = 12, .is_exact = false}, 1'000'000),
            "at least 1,500 rows share one vector, one is row 12; a search returns them in row "
            "order");
  EXPECT_EQ(EqualRowsText({.count = 3}, 3),
            "all 3 rows share one vector; every search returns them in row order");
  EXPECT_EQ(EqualRowsText({.count = 2}, 2'999),
            "2 rows share one vector, the first is row 0; a search returns them in row order");
  EXPECT_EQ(EqualRowsText({.count = 1}, 1), "");
  EXPECT_EQ(EqualRowsText({.count = 2}, 3'000), "");
}

}  // namespace
}  // namespace simile::data

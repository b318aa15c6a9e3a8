#include "backend/cpu/int8_pass.h"

#include <gtest/gtest.h>

#include <vector>

namespace simile::backend::cpu {
namespace {

constexpr Row kSameBit = 1U << 14;  // rows this far apart share their bit

TEST(ExcludedRowsTest, DistinguishesRowsThatShareABit) {
  const std::vector<Row> rows{3, 64, 3 + kSameBit, 9'000, 70'000};
  ExcludedRows excluded;
  excluded.Reset(rows);
  for (Row row = 0; row < 6 * kSameBit; ++row) {
    ASSERT_EQ(excluded.Contains(row), std::binary_search(rows.begin(), rows.end(), row)) << row;
  }
}

TEST(ExcludedRowsTest, ForgetsWhatItWasResetFrom) {
  const std::vector<Row> many{1, 2, 3, 4, 5, 6};
  const std::vector<Row> others{11, 12, 13, 14};
  const std::vector<Row> few{7};
  ExcludedRows excluded;
  excluded.Reset(many);
  excluded.Reset(others);
  EXPECT_FALSE(excluded.Contains(3));
  EXPECT_TRUE(excluded.Contains(12));
  excluded.Reset(few);
  EXPECT_TRUE(excluded.Contains(7));
  EXPECT_FALSE(excluded.Contains(12));
  excluded.Reset({});
  EXPECT_FALSE(excluded.Contains(7));
}

}  // namespace
}  // namespace simile::backend::cpu

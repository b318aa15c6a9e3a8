#include "simile/row_mask.h"

#include <gtest/gtest.h>

namespace simile {
namespace {

TEST(RowMaskTest, AllowsNoRowAtFirst) {
  const RowMask mask(130);
  EXPECT_EQ(mask.row_count(), 130U);
  EXPECT_EQ(mask.AllowedCount(), 0U);
  for (Row row = 0; row < 130; ++row) EXPECT_FALSE(mask.Allows(row));
}

TEST(RowMaskTest, AllowsAndForbidsOneRowAtATime) {
  // Both sides of the word boundaries, and the last row.
  for (const Row row : {0U, 63U, 64U, 65U, 127U, 128U, 129U}) {
    RowMask mask(130);
    mask.Allow(row);
    EXPECT_EQ(mask.AllowedCount(), 1U);
    for (Row other = 0; other < 130; ++other) EXPECT_EQ(mask.Allows(other), other == row);
    mask.Allow(row);
    EXPECT_EQ(mask.AllowedCount(), 1U);
    mask.Forbid(row);
    EXPECT_FALSE(mask.Allows(row));
    EXPECT_EQ(mask.AllowedCount(), 0U);
  }
}

TEST(RowMaskTest, CountsEveryRowItAllows) {
  RowMask mask(1'000);
  for (Row row = 0; row < 1'000; row += 3) mask.Allow(row);
  EXPECT_EQ(mask.AllowedCount(), 334U);
}

TEST(RowMaskTest, CoversNoRowsAtAll) { EXPECT_EQ(RowMask(0).AllowedCount(), 0U); }

}  // namespace
}  // namespace simile

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

TEST(RowMaskTest, KeepsItsIdentityInACopy) {
  RowMask mask(130);
  mask.Allow(7);
  const RowMask::Identity kept = mask.identity();
  const RowMask copy = mask;
  EXPECT_EQ(copy.identity(), kept);
  EXPECT_EQ(copy, mask);
}

TEST(RowMaskTest, GetsANewIdentityWithEveryChangeWhileTheOldOneIsKept) {
  const RowMask other(130);
  void (*const changes[])(RowMask&, const RowMask&) = {
      [](RowMask& mask, const RowMask&) { mask.Allow(7); },
      [](RowMask& mask, const RowMask&) { mask.Forbid(8); },
      [](RowMask& mask, const RowMask&) { mask.Invert(); },
      [](RowMask& mask, const RowMask& with) { mask.IntersectWith(with); },
      [](RowMask& mask, const RowMask& with) { mask.UniteWith(with); }};
  RowMask mask(130);
  for (const auto change : changes) {
    const RowMask::Identity kept = mask.identity();
    const RowMask copy = mask;
    change(mask, other);
    EXPECT_NE(mask.identity(), kept);
    EXPECT_EQ(copy.identity(), kept) << "the copy has not changed";
  }
}

TEST(RowMaskTest, IsEqualToAMaskOfTheSameRowsWithAnotherIdentity) {
  RowMask a(130), b(130);
  a.Allow(7);
  EXPECT_NE(a, b);
  b.Allow(7);
  EXPECT_EQ(a, b);
  EXPECT_NE(a.identity(), b.identity());
  EXPECT_NE(RowMask(130), RowMask(131));
}

TEST(RowMaskTest, CoversNoRowsAtAll) { EXPECT_EQ(RowMask(0).AllowedCount(), 0U); }

}  // namespace
}  // namespace simile

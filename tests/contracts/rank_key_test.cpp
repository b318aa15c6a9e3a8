#include "simile/rank_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace simile {
namespace {

constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

TEST(RankKeyTest, RanksHigherScoresFirst) {
  const std::vector<float> ascending{
      -kMax, -1.0F, -kSmallest, 0.0F, kSmallest, 0.5F, std::nextafter(0.5F, 1.0F), 1.0F, kMax};
  for (std::size_t i = 1; i < ascending.size(); ++i) {
    // The lower row must not help a lower score.
    EXPECT_GT(RankKey(ascending[i], 0xfffffff0U), RankKey(ascending[i - 1], 0)) << ascending[i];
  }
}

TEST(RankKeyTest, GivesTiesToTheLowerRow) {
  EXPECT_GT(RankKey(0.5F, 3), RankKey(0.5F, 4));
  EXPECT_GT(RankKey(-0.5F, 0), RankKey(-0.5F, 0xfffffff0U));
  EXPECT_EQ(RankKey(0.5F, 3), RankKey(0.5F, 3));
}

TEST(RankKeyTest, ReadsBackScoreAndRow) {
  for (const float score : {-kMax, -1.5F, -kSmallest, 0.0F, kSmallest, 0.7029F, kMax}) {
    for (const Row row : {0U, 1U, 62'422U, 0xffffffefU}) {
      const RankKey key(score, row);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(key.score()), std::bit_cast<std::uint32_t>(score));
      EXPECT_EQ(key.row(), row);
    }
  }
}

TEST(RankKeyTest, TreatsNegativeZeroAsZero) {
  EXPECT_EQ(RankKey(-0.0F, 7), RankKey(0.0F, 7));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(RankKey(-0.0F, 7).score()), 0U);
  EXPECT_GT(RankKey(-0.0F, 6), RankKey(0.0F, 7));
}

TEST(RankKeyTest, RanksNothingBelowTheEmptyKey) {
  EXPECT_GT(RankKey(-kMax, 0xffffffefU), RankKey());
}

TEST(RankedScoreTest, ChangesNothingButNegativeZero) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(RankedScore(-0.0F)), 0U);
  for (const float score : {-kMax, -kSmallest, 0.0F, kSmallest, kMax}) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(RankedScore(score)),
              std::bit_cast<std::uint32_t>(score));
  }
}

}  // namespace
}  // namespace simile

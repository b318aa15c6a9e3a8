#include "cli/plan/known_cards.h"

#include <string>
#include <vector>

#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

namespace simile::cli {
namespace {

TEST(KnownCardsTest, KnowsCardsByTheDriversNames) {
  EXPECT_EQ(SpeedOfCard("NVIDIA H200")->bytes_per_s, 4.8e12);
  EXPECT_EQ(SpeedOfCard("NVIDIA H100 80GB HBM3")->bytes_per_s, 3.35e12);
  EXPECT_EQ(SpeedOfCard("NVIDIA A100-SXM4-80GB")->bytes_per_s, 2.039e12);
  EXPECT_EQ(SpeedOfCard("NVIDIA A100-SXM4-40GB")->bytes_per_s, 1.555e12);
  EXPECT_EQ(SpeedOfCard("NVIDIA H100 NVL")->bytes_per_s, 3.9e12);
  EXPECT_EQ(SpeedOfCard("NVIDIA H200 NVL")->products_per_s, 417.75e12);
  EXPECT_EQ(SpeedOfCard("Tesla V100-PCIE-16GB")->products_per_s, 56e12);
  EXPECT_EQ(SpeedOfCard("Tesla V100-SXM2-16GB")->products_per_s, 62.5e12);
  EXPECT_EQ(SpeedOfCard("Tesla T4")->bytes_per_s, 320e9);
  EXPECT_EQ(SpeedOfCard("NVIDIA L40S")->bytes_per_s, 864e9);
  EXPECT_EQ(SpeedOfCard("NVIDIA L4")->bytes_per_s, 300e9);
}

TEST(KnownCardsTest, KnowsEveryNameThatItLists) {
  const std::vector<std::string> names = absl::StrSplit(KnownCardNames(), ", ");
  for (const std::string& name : names) {
    const auto speed = SpeedOfCard(name);
    ASSERT_TRUE(speed.has_value()) << name;
    EXPECT_GT(speed->products_per_s, speed->bytes_per_s) << name;
  }
}

TEST(KnownCardsTest, GuessesNothing) {
  EXPECT_FALSE(SpeedOfCard("NVIDIA A1000").has_value());
  EXPECT_FALSE(SpeedOfCard("NVIDIA L400").has_value());
  EXPECT_FALSE(SpeedOfCard("").has_value());
}

}  // namespace
}  // namespace simile::cli

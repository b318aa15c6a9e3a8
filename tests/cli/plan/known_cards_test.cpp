#include "cli/plan/known_cards.h"

#include <string>
#include <vector>

#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

namespace simile::cli {
namespace {

TEST(KnownCardsTest, KnowsCardsByTheDriversNames) {
  EXPECT_EQ(FactsOfCard("NVIDIA H200")->speed.bytes_per_s, 4.8e12);
  EXPECT_EQ(FactsOfCard("NVIDIA H100 80GB HBM3")->speed.bytes_per_s, 3.35e12);
  EXPECT_EQ(FactsOfCard("NVIDIA A100-SXM4-80GB")->speed.bytes_per_s, 2.039e12);
  EXPECT_EQ(FactsOfCard("NVIDIA A100-SXM4-40GB")->speed.bytes_per_s, 1.555e12);
  EXPECT_EQ(FactsOfCard("NVIDIA H100 NVL")->speed.bytes_per_s, 3.9e12);
  EXPECT_EQ(FactsOfCard("NVIDIA H200 NVL")->speed.products_per_s, 417.75e12);
  EXPECT_EQ(FactsOfCard("Tesla V100-PCIE-16GB")->speed.products_per_s, 56e12);
  EXPECT_EQ(FactsOfCard("Tesla V100-SXM2-16GB")->speed.products_per_s, 62.5e12);
  EXPECT_EQ(FactsOfCard("Tesla T4")->speed.bytes_per_s, 320e9);
  EXPECT_EQ(FactsOfCard("NVIDIA L40S")->speed.bytes_per_s, 864e9);
  EXPECT_EQ(FactsOfCard("NVIDIA L4")->speed.bytes_per_s, 300e9);
}

TEST(KnownCardsTest, KnowsEveryNameThatItLists) {
  const std::vector<std::string> names = absl::StrSplit(KnownCardNames(), ", ");
  for (const std::string& name : names) {
    const auto facts = FactsOfCard(name);
    ASSERT_TRUE(facts.has_value()) << name;
    EXPECT_GT(facts->speed.products_per_s, facts->speed.bytes_per_s) << name;
  }
}

TEST(KnownCardsTest, KnowsComputeCapabilities) {
  EXPECT_EQ(FactsOfCard("Tesla V100-SXM2-16GB")->capability, 70);
  EXPECT_EQ(FactsOfCard("Tesla T4")->capability, 75);
  EXPECT_EQ(FactsOfCard("NVIDIA A100-SXM4-40GB")->capability, 80);
  EXPECT_EQ(FactsOfCard("NVIDIA A10")->capability, 86);
  EXPECT_EQ(FactsOfCard("NVIDIA L4")->capability, 89);
  EXPECT_EQ(FactsOfCard("NVIDIA H200")->capability, 90);
}

TEST(KnownCardsTest, GuessesNothing) {
  EXPECT_FALSE(FactsOfCard("NVIDIA A1000").has_value());
  EXPECT_FALSE(FactsOfCard("NVIDIA L400").has_value());
  EXPECT_FALSE(FactsOfCard("").has_value());
}

}  // namespace
}  // namespace simile::cli

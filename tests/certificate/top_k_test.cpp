#include "certificate/top_k.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "certificate/seeded_random.h"

namespace simile::certificate {
namespace {

constexpr float kNoThreshold = -std::numeric_limits<float>::infinity();

std::vector<RankKey> FindBestKeys(const std::vector<RankKey>& offers, std::size_t k,
                                  float threshold) {
  std::vector<RankKey> buffer(TopK::CapacityFor(k, offers.size()));
  TopK top(buffer, k, threshold);
  for (const RankKey key : offers) top.Offer(key);
  const auto sorted = top.Sorted();
  return {sorted.begin(), sorted.end()};
}

TEST(TopKTest, KeepsTheBestOfManyWhateverTheirOrder) {
  constexpr std::uint64_t kSeed = 11;
  tests::SeededRandom random(kSeed);
  for (const std::size_t k : {1U, 2U, 10U, 63U, 64U, 65U, 500U, 3'000U}) {
    std::vector<RankKey> offers;
    for (Row row = 0; row < 2'000; ++row) {
      // A grid of 100 scores: most are tied.
      offers.emplace_back(static_cast<float>(random.Below(100)) / 8, row);
    }
    for (std::size_t i = offers.size(); i > 1; --i)
      std::swap(offers[i - 1], offers[random.Below(i)]);
    std::vector<RankKey> expected = offers;
    std::sort(expected.begin(), expected.end(), std::greater<>());
    if (expected.size() > k) expected.resize(k);
    EXPECT_EQ(FindBestKeys(offers, k, kNoThreshold), expected) << "k " << k << ", seed " << kSeed;
  }
}

TEST(TopKTest, ReturnsFewerWhenFewerPassTheThreshold) {
  const std::vector<RankKey> offers{{0.5F, 0}, {0.7F, 1}, {0.6F, 2}, {0.4F, 3}};
  EXPECT_EQ(FindBestKeys(offers, 3, 0.6F), (std::vector<RankKey>{{0.7F, 1}, {0.6F, 2}}));
  EXPECT_TRUE(FindBestKeys(offers, 3, 0.8F).empty());
}

TEST(TopKTest, RaisesItsGateToTheKthScore) {
  std::vector<RankKey> buffer(TopK::CapacityFor(2, 1'000));
  TopK top(buffer, 2, kNoThreshold);
  for (Row row = 0; row < 1'000; ++row) top.Offer({static_cast<float>(row), row});
  EXPECT_GT(top.gate(), 800);
  EXPECT_LE(top.gate(), 998);
}

constexpr long double kChance = 1e-6L;

// The chance that a Poisson variable reaches rank: its terms from there on, smallest last.
long double ChanceToReach(std::size_t rank, long double mean) {
  if (rank == 0) return 1;
  if (mean == 0) return 0;
  const auto from = static_cast<long double>(rank);
  long double term = std::exp(from * std::log(mean) - mean - std::lgamma(from + 1));
  long double sum = 0;
  for (long double n = from; term > 0 && (n <= mean || term > sum * 1e-20L); ++n) {
    sum += term;
    term *= mean / (n + 1);
  }
  return sum;
}

const std::vector<std::size_t> kRanks{1, 2, 3, 5, 10, 50, 100, 499, 500, 501, 1'000, 10'000};

std::vector<double> Fractions() {
  std::vector<double> fractions{0, 1e-9, 1e-6, 1e-3};
  for (int i = 1; i <= 100; ++i) fractions.push_back(i / 100.0);
  return fractions;
}

TEST(SpeculativeRankTest, IsWrongOnceInAMillionAtMost) {
  for (const std::size_t k : kRanks) {
    for (const double fraction : Fractions()) {
      const std::size_t rank = SpeculativeRank(k, fraction);
      if (rank == k) continue;  // proven, no chance is left
      ASSERT_LE(ChanceToReach(rank, static_cast<long double>(k) * fraction), kChance * 1.0001L)
          << "k " << k << ", fraction " << fraction << ", rank " << rank;
    }
  }
}

TEST(SpeculativeRankTest, IsTheLeastSafeRankWhereTheMeanIsSmall) {
  for (const std::size_t k : kRanks) {
    for (const double fraction : Fractions()) {
      const long double mean = static_cast<long double>(k) * fraction;
      const std::size_t rank = SpeculativeRank(k, fraction);
      if (mean > 500 || rank <= 1) continue;
      ASSERT_GT(ChanceToReach(rank - 1, mean), kChance * 0.9999L)
          << "k " << k << ", fraction " << fraction << ", rank " << rank;
    }
  }
}

TEST(SpeculativeRankTest, IsNotFarAboveTheLeastSafeRankWhereTheMeanIsLarge) {
  for (const double mean : {500.1, 700.0, 1'500.0, 5'000.0}) {
    const std::size_t rank = SpeculativeRank(10'000, mean / 10'000);
    EXPECT_GT(ChanceToReach(rank, static_cast<long double>(mean)), kChance / 100) << mean;
  }
}

TEST(SpeculativeRankTest, NeverExceedsK) {
  for (const std::size_t k : kRanks) {
    for (const double fraction : Fractions()) {
      ASSERT_LE(SpeculativeRank(k, fraction), k) << "fraction " << fraction;
      ASSERT_GE(SpeculativeRank(k, fraction), 1U) << "fraction " << fraction;
    }
    EXPECT_EQ(SpeculativeRank(k, 1), k);
    EXPECT_EQ(SpeculativeRank(k, 7), k);
  }
}

TEST(SpeculativeRankTest, IsOneWhenNothingIsExpected) {
  for (const std::size_t k : kRanks) {
    EXPECT_EQ(SpeculativeRank(k, 0), 1U);
    EXPECT_EQ(SpeculativeRank(k, -1), 1U);
    EXPECT_EQ(SpeculativeRank(k, 1e-7 / static_cast<double>(k)), 1U);
  }
}

TEST(SpeculativeRankTest, GrowsWithTheShareSeen) {
  for (const std::size_t k : kRanks) {
    std::size_t before = 0;
    for (int step = 0; step <= 5'000; ++step) {
      const std::size_t rank = SpeculativeRank(k, step / 5'000.0);
      ASSERT_GE(rank, before) << "k " << k << ", step " << step;
      before = rank;
    }
  }
}

TEST(SpeculativeRankTest, GrowsWithK) {
  for (const double fraction : {1e-3, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9, 1.0}) {
    std::size_t before = 0;
    for (std::size_t k = 1; k <= 10'000; k += k < 2'000 ? 1 : 37) {
      const std::size_t rank = SpeculativeRank(k, fraction);
      ASSERT_GE(rank, before) << "fraction " << fraction << ", k " << k;
      before = rank;
    }
  }
}

}  // namespace
}  // namespace simile::certificate

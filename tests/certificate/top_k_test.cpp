#include "certificate/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "certificate/seeded_random.h"

namespace simile::certificate {
namespace {

constexpr float kNoThreshold = -std::numeric_limits<float>::infinity();

std::vector<RankKey> BestOf(const std::vector<RankKey>& offers, std::size_t k, float threshold) {
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
    EXPECT_EQ(BestOf(offers, k, kNoThreshold), expected) << "k " << k << ", seed " << kSeed;
  }
}

TEST(TopKTest, ReturnsFewerWhenFewerPassTheThreshold) {
  const std::vector<RankKey> offers{{0.5F, 0}, {0.7F, 1}, {0.6F, 2}, {0.4F, 3}};
  EXPECT_EQ(BestOf(offers, 3, 0.6F), (std::vector<RankKey>{{0.7F, 1}, {0.6F, 2}}));
  EXPECT_TRUE(BestOf(offers, 3, 0.8F).empty());
}

TEST(TopKTest, RaisesItsGateToTheKthScore) {
  std::vector<RankKey> buffer(TopK::CapacityFor(2, 1'000));
  TopK top(buffer, 2, kNoThreshold);
  for (Row row = 0; row < 1'000; ++row) top.Offer({static_cast<float>(row), row});
  EXPECT_GT(top.gate(), 800);
  EXPECT_LE(top.gate(), 998);
}

}  // namespace
}  // namespace simile::certificate

#include "data/load/dataset_sample.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::data {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::Ge;
using testing::Le;

constexpr std::uint64_t kSampled = 20'000;
constexpr std::uint64_t kTimes = 10;

// Draws kTimes as many values as are sampled. Returns the estimate over the true number.
double EstimateOverTruth(const std::function<std::uint64_t(std::uint64_t)>& draw) {
  std::map<std::uint64_t, std::uint64_t> counts;
  DistinctSample sample;
  double estimate = 0;
  for (std::uint64_t i = 0; i < kSampled * kTimes; ++i) {
    ++counts[draw(i)];
    if (i + 1 == kSampled / 2) sample.distinct_in_half = counts.size();
    if (i + 1 != kSampled) continue;
    sample.values = kSampled;
    sample.distinct = counts.size();
    for (const auto& [value, count] : counts) {
      if (count == 1) ++sample.once;
      if (count == 2) ++sample.twice;
    }
    estimate = DistinctCount(sample, kTimes);
  }
  return estimate / static_cast<double>(counts.size());
}

TEST(DistinctCountTest, IsExactWhereAllDifferOrAllAreKnown) {
  EXPECT_THAT(EstimateOverTruth([](std::uint64_t i) { return i; }), DoubleNear(1, 0.01));
  EXPECT_THAT(EstimateOverTruth([](std::uint64_t i) { return i % 75; }), DoubleNear(1, 1e-9));
  EXPECT_EQ(DistinctCount({}, 10), 0);
  EXPECT_EQ(DistinctCount({.values = 5, .distinct = 3, .once = 2}, 1), 3);
}

TEST(DistinctCountTest, IsWithinAFactorOfTwoInBetween) {
  std::mt19937_64 random(1);
  const auto uniform = [&](std::uint64_t) { return random() % 40'000; };
  EXPECT_THAT(EstimateOverTruth(uniform), AllOf(Ge(0.95), Le(2.0)));
  // Frequencies fall with the rank, as those of words and names do.
  const auto skewed = [&](std::uint64_t) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    return static_cast<std::uint64_t>(1e6 * share * share * share);
  };
  EXPECT_THAT(EstimateOverTruth(skewed), AllOf(Ge(0.6), Le(1.6)));
}

}  // namespace
}  // namespace simile::data

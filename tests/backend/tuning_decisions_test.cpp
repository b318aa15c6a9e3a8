#include "backend/cpu/tuning_decisions.h"

#include <vector>

#include <gtest/gtest.h>

#include "backend/cpu/int8_tuning.h"

namespace simile::backend::cpu {
namespace {

constexpr std::size_t kKiB = 1'024;

std::vector<TimePair> Pairs(std::initializer_list<double> firsts, double second) {
  std::vector<TimePair> pairs;
  for (const double first : firsts) pairs.push_back({first, second});
  return pairs;
}

TEST(MiddleRatioTest, IsTheMedianOfTheRatios) {
  EXPECT_DOUBLE_EQ(*MiddleRatio(Pairs({1.1, 0.9, 1, 1.2, 0.8}, 2)), 0.5);
}

TEST(MiddleRatioTest, IgnoresDisturbedSamples) {
  EXPECT_DOUBLE_EQ(*MiddleRatio(Pairs({1, 90, 1, 1, 70, 1, 1}, 2)), 0.5);
}

TEST(MiddleRatioTest, FindsNothingInFewSamples) {
  EXPECT_FALSE(MiddleRatio({}).has_value());
  EXPECT_FALSE(MiddleRatio(Pairs({1, 1, 1, 1}, 1)).has_value());
}

TEST(MiddleRatioTest, FindsNothingWhenMostSamplesWereDisturbed) {
  EXPECT_FALSE(MiddleRatio(Pairs({1, 90, 80, 1, 70, 60, 50}, 1)).has_value());
  // The same for the second strategy's times.
  EXPECT_FALSE(
      MiddleRatio(std::vector<TimePair>{{1, 1}, {1, 90}, {1, 80}, {1, 1}, {1, 70}}).has_value());
}

TEST(MiddleRatioTest, IgnoresTimesBelowTheClocksResolution) {
  EXPECT_FALSE(MiddleRatio(Pairs({0, 0, 0, 0, 0, 0}, 1)).has_value());
  EXPECT_FALSE(MiddleRatio(Pairs({1, 1, 1, 1, 1, 1}, 0)).has_value());
  EXPECT_DOUBLE_EQ(*MiddleRatio(Pairs({0, 1, 1, 1, 1, 1}, 1)), 1);
}

TEST(BlockBytesTest, IsAnEighthOfTheCacheWithinBounds) {
  EXPECT_EQ(BlockBytesFor(2'048 * kKiB), 256 * kKiB);
  EXPECT_EQ(BlockBytesFor(1'536 * kKiB), 192 * kKiB);
  EXPECT_EQ(BlockBytesFor(256 * kKiB), 128 * kKiB);
  EXPECT_EQ(BlockBytesFor(16'384 * kKiB), 1'024 * kKiB);
}

TEST(LargeBatchMinTest, IsTheLeastFromWhichTheLargeKernelStaysFaster) {
  EXPECT_EQ(LargeBatchMinFor(std::vector<RatioAt>{{16, 0.5}, {8, 0.8}, {6, 1}, {5, 1.1}}), 6U);
  EXPECT_EQ(LargeBatchMinFor(std::vector<RatioAt>{{16, 0.5}, {8, 0.8}, {5, 0.9}}), 5U);
  // Faster at five queries and slower at eight: noise, or the large kernel does not pay there.
  EXPECT_EQ(LargeBatchMinFor(std::vector<RatioAt>{{16, 0.9}, {8, 1.2}, {5, 0.9}}), 16U);
}

TEST(LargeBatchMinTest, IsBeyondTheLargestBatchWhenTheLargeKernelIsSlowerThere) {
  EXPECT_EQ(LargeBatchMinFor(std::vector<RatioAt>{{16, 1.01}}), 32U);
}

TEST(IsDeniedTest, DistinguishesAContradictionFromATie) {
  EXPECT_TRUE(IsDenied(std::vector<RatioAt>{{16, 1.3}, {8, 0.8}}, 1));
  EXPECT_FALSE(IsDenied(std::vector<RatioAt>{{16, 0.9}, {8, 1.01}, {4, 0.99}}, 1));
  EXPECT_FALSE(IsDenied(std::vector<RatioAt>{{16, 0.9}, {8, 0.8}}, 1));
  EXPECT_FALSE(IsDenied(std::vector<RatioAt>{{16, 1.3}}, 1));
}

TEST(GatherShareTest, IsTheGeometricMeanRoundedUp) {
  EXPECT_EQ(GatherShareFor(9, 9), 9U);
  EXPECT_EQ(GatherShareFor(20, 5), 10U);
  EXPECT_EQ(GatherShareFor(20, 5.1), 11U);
}

TEST(GatherShareTest, StaysWithinItsBounds) {
  EXPECT_EQ(GatherShareFor(0.5, 1), 4U);
  EXPECT_EQ(GatherShareFor(1e9, 1e9), 256U);
}

TEST(ScanRowsMaxTest, IsTheLargestSizeWhoseScanCostsHardlyMore) {
  EXPECT_EQ(ScanRowsMaxFor(std::vector<RatioAt>{{512, 0.7}, {1'024, 1.09}, {2'048, 1.2}}), 1'024U);
  EXPECT_EQ(ScanRowsMaxFor(std::vector<RatioAt>{{512, 0.7}, {1'024, 1.5}, {2'048, 0.9}}), 512U);
}

TEST(ScanRowsMaxTest, StaysWithinItsBounds) {
  EXPECT_EQ(ScanRowsMaxFor(std::vector<RatioAt>{{512, 3}}), 256U);
  EXPECT_EQ(ScanRowsMaxFor(std::vector<RatioAt>{{1U << 20, 0.1}}), 16'384U);
}

TEST(TuningValuesTest, HaveDefaultsWithinTheirBounds) {
  for (const TuningValue& value : TuningValues()) {
    EXPECT_LE(value.min, Int8Tuning{}.*value.value) << value.name;
    EXPECT_GE(value.max, Int8Tuning{}.*value.value) << value.name;
  }
}

TEST(TuningValuesTest, PutFindingsOverTheDefaults) {
  TuningFindings findings;
  Int8Tuning wanted;
  EXPECT_EQ(TuningOf(findings), wanted);
  findings.gather_share = 99;
  wanted.gather_share = 99;
  EXPECT_EQ(TuningOf(findings), wanted);
}

}  // namespace
}  // namespace simile::backend::cpu

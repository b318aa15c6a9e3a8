#include "certificate/cosine_threshold.h"

#include <cmath>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "certificate/canonical_score.h"

namespace simile::certificate {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Brought to unit length as rows and queries are: in double, then each number rounded to fp32.
std::vector<float> UnitVector(std::mt19937_64& random, std::size_t dim) {
  std::normal_distribution<double> normal;
  std::vector<double> values(dim);
  double squares = 0;
  for (double& value : values) {
    value = static_cast<float>(normal(random));
    squares += value * value;
  }
  const double length = std::sqrt(squares);
  std::vector<float> unit;
  for (const double value : values) unit.push_back(static_cast<float>(value / length));
  return unit;
}

TEST(CosineThresholdTest, FindsEveryRowThatIsEqualToTheQueryFromOneOn) {
  constexpr std::uint64_t kSeed = 41;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937_64 random(kSeed);
  int above_one = 0;
  int below_one = 0;
  for (const std::size_t dim : {1, 2, 3, 31, 32, 33, 128, 384, 1'000, 4'096}) {
    for (int i = 0; i < 300; ++i) {
      const std::vector<float> row = UnitVector(random, dim);
      const float score = CanonicalScoreReference(row, row);
      ASSERT_GE(score, CosineThreshold(1, dim)) << dim;
      ASSERT_LE(score, 1 + CosineRounding(dim)) << dim;
      ASSERT_GE(score, CosineThreshold(score, dim)) << "a score finds its own row";
      std::vector<float> opposite = row;
      for (float& value : opposite) value = -value;
      ASSERT_GE(CanonicalScoreReference(row, opposite), CosineThreshold(-1, dim)) << dim;
      above_one += score > 1 ? 1 : 0;
      below_one += score < 1 ? 1 : 0;
    }
  }
  EXPECT_GT(above_one, 0) << "nothing was to be found";
  EXPECT_GT(below_one, 0) << "nothing was to be found";
}

TEST(CosineThresholdTest, LeavesOtherThresholdsAsTheyAre) {
  for (const float threshold : {-0.99999994F, -0.5F, -0.0F, 0.0F, 0.7F, 0.999F, 1.5F, 1e30F}) {
    EXPECT_EQ(CosineThreshold(threshold, 384), threshold);
  }
  EXPECT_EQ(CosineThreshold(-kInfinity, 384), -kInfinity) << "no threshold";
  EXPECT_EQ(CosineThreshold(-1, 384), -kInfinity);
  EXPECT_EQ(CosineThreshold(-1.5F, 384), -kInfinity);
}

TEST(CosineThresholdTest, RisesWithTheThresholdAndIsNeverAboveIt) {
  for (const std::size_t dim : {1, 384, 4'096}) {
    float last = -kInfinity;
    for (float threshold = 0.9999F; threshold < 1.0001F;
         threshold = std::nextafter(threshold, 2.0F)) {
      const float compared = CosineThreshold(threshold, dim);
      ASSERT_LE(compared, threshold);
      ASSERT_GE(compared, last);
      ASSERT_GE(compared, threshold - 3 * CosineRounding(dim));
      last = compared;
    }
  }
}

TEST(CosineRoundingTest, IsASmallNumberThatDocumentsState) {
  EXPECT_NEAR(CosineRounding(128), 6.6e-7, 0.05e-6);
  EXPECT_NEAR(CosineRounding(384), 1.13e-6, 0.01e-6);
  EXPECT_NEAR(CosineRounding(4'096), 8.1e-6, 0.1e-6);
}

}  // namespace
}  // namespace simile::certificate

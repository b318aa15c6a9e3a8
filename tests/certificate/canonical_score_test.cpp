#include "certificate/canonical_score.h"

#include <array>
#include <bit>
#include <cmath>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "certificate/seeded_random.h"

namespace simile::certificate {
namespace {

using ::simile::tests::SeededRandom;

TEST(CanonicalScoreReferenceTest, AddsLanesSixteenEightFourTwoAndOneApart) {
  // Lanes 1 and 17 are added first (16 apart) and give 2, which changes 2^24; added to 2^24 one
  // after the other, each 1 is rounded away.
  std::vector<float> row(33, 0.0F);
  const std::vector<float> ones(33, 1.0F);
  row[0] = 0x1p24F;
  row[32] = 1;  // lane 0 again: lost
  row[1] = 1;
  row[17] = 1;
  EXPECT_EQ(CanonicalScoreReference(row, ones), 0x1p24F + 2);
  row[17] = 0;
  row[2] = 1;  // added to 2^24 before lane 1 is: both lost
  EXPECT_EQ(CanonicalScoreReference(row, ones), 0x1p24F);
}

TEST(CanonicalScoreReferenceTest, DoesNotRoundProducts) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, whose last term a rounded product would lose.
  std::vector<float> a(33, 0.0F);
  std::vector<float> b(33, 0.0F);
  a[0] = -(1 + 0x1p-11F);
  b[0] = 1;
  a[32] = 1 + 0x1p-12F;
  b[32] = 1 + 0x1p-12F;
  EXPECT_EQ(CanonicalScoreReference(a, b), 0x1p-24F);
}

TEST(CanonicalScoreReferenceTest, KeepsSubnormals) {
  const std::array<float, 1> a{0x1p-100F};
  const std::array<float, 1> b{0x1p-49F};
  EXPECT_EQ(CanonicalScoreReference(a, b), 0x1p-149F);
}

TEST(CanonicalScoreReferenceTest, ReturnsPositiveZeroForNegativeZero) {
  const std::array<float, 1> a{-0x1p-100F};
  const std::array<float, 1> b{0x1p-100F};
  EXPECT_EQ(std::bit_cast<std::uint32_t>(CanonicalScoreReference(a, b)), 0U);
}

TEST(CanonicalScoreErrorTest, GrowsByOneRoundingForEveryThirtyTwoDimensions) {
  const auto gamma = [](double n) { return n * 0x1p-24 / (1 - n * 0x1p-24); };
  EXPECT_NEAR(CanonicalScoreError(1, 1, 1), gamma(6), 1e-15);
  EXPECT_NEAR(CanonicalScoreError(32, 1, 1), gamma(6), 1e-15);
  EXPECT_NEAR(CanonicalScoreError(33, 1, 1), gamma(7), 1e-15);
  EXPECT_NEAR(CanonicalScoreError(384, 2, 3), 6 * gamma(17), 1e-15);
}

TEST(CanonicalScoreErrorTest, CountsUnderflowWhereTheVectorsAreTiny) {
  EXPECT_GE(CanonicalScoreError(64, 0x1p-80, 0x1p-80), 64 * 0x1p-149);
}

// The dot product far more precisely than the bound, and the vectors' lengths.
struct Exact {
  long double dot = 0;
  double norm_a = 0;
  double norm_b = 0;
};

Exact ExactDot(const std::vector<float>& a, const std::vector<float>& b) {
  Exact exact;
  long double squares_a = 0;
  long double squares_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    exact.dot += static_cast<long double>(a[i]) * static_cast<long double>(b[i]);
    squares_a += static_cast<long double>(a[i]) * static_cast<long double>(a[i]);
    squares_b += static_cast<long double>(b[i]) * static_cast<long double>(b[i]);
  }
  exact.norm_a = static_cast<double>(std::sqrt(squares_a));
  exact.norm_b = static_cast<double>(std::sqrt(squares_b));
  return exact;
}

TEST(CanonicalScoreErrorTest, BoundsTheDistanceFromTheExactDotProduct) {
  constexpr std::uint64_t kSeed = 77;
  SeededRandom random(kSeed);
  double largest_share = 0;
  for (int pair = 0; pair < 20'000; ++pair) {
    const std::size_t dim = random.OneIn(50) ? random.Between(1, 4096) : random.Between(1, 200);
    const bool wild = random.OneIn(3);
    // With one sign the roundings add up; with random signs they cancel.
    const bool one_sign = random.OneIn(3);
    std::vector<float> a(dim);
    std::vector<float> b(dim);
    for (std::size_t i = 0; i < dim; ++i) {
      a[i] = wild ? random.Wild(-80, 40) : random.Signed();
      b[i] = wild ? random.Wild(-80, 40) : random.Signed();
      if (one_sign) {
        a[i] = std::fabs(a[i]);
        b[i] = std::fabs(b[i]);
      }
    }
    const Exact exact = ExactDot(a, b);
    const double error = static_cast<double>(
        std::fabs(static_cast<long double>(CanonicalScoreReference(a, b)) - exact.dot));
    const double bound = CanonicalScoreError(dim, exact.norm_a, exact.norm_b);
    ASSERT_LE(error, bound) << "seed " << kSeed << ", pair " << pair << ", dim " << dim;
    largest_share = std::max(largest_share, error / bound);
  }
  // A bound that is never approached would make this test prove nothing.
  EXPECT_GT(largest_share, 0.05);
}

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

#include "certificate/combined_score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "certificate/canonical_score.h"
#include "certificate/padded_rows.h"
#include "certificate/seeded_random.h"

namespace simile::certificate {
namespace {

using tests::PaddedRows;
using tests::SeededRandom;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(SquashTest, MapsZeroToAHalfAndTheEndsToTheEnds) {
  EXPECT_EQ(Squash(0.0F), 0.5F);
  EXPECT_EQ(Squash(-0.0F), 0.5F);
  EXPECT_EQ(Squash(1.0F), 0.75F);
  EXPECT_EQ(Squash(-1.0F), 0.25F);
  EXPECT_EQ(Squash(3.0F), 0.875F);
  EXPECT_EQ(Squash(std::numeric_limits<float>::max()), 1.0F);
  EXPECT_EQ(Squash(-std::numeric_limits<float>::max()), 0.0F);
}

// Computed in fp32 it would fall between many neighbouring floats; the bounds need it monotonic.
TEST(SquashTest, NeverFallsWhileItsArgumentRises) {
  constexpr std::uint64_t kSeed = 12;
  SeededRandom random(kSeed);
  for (int start = 0; start < 3'000; ++start) {
    float x = random.Wild(-140, 126);
    for (int step = 0; step < 1'000; ++step) {
      const float next = std::nextafter(x, kInfinity);
      ASSERT_LE(Squash(x), Squash(next)) << "at " << x << ", seed " << kSeed;
      x = next;
    }
  }
}

TEST(BestScoreTest, IsTheBestPositiveWhereItBeatsTheBestNegative) {
  const std::vector<float> weights{1, 1, 1, 1};
  EXPECT_EQ(BestScore(std::vector<float>{0.25F, 0.5F, 0.375F, -1}, weights, 2), Squash(0.5F));
  EXPECT_EQ(BestScore(std::vector<float>{0.25F, 0.5F, 0.625F, -1}, weights, 2), -Squash(0.625F));
  EXPECT_EQ(BestScore(std::vector<float>{0.25F, 0.5F, 0.5F, -1}, weights, 2), -Squash(0.5F))
      << "a tie is not a win";
  EXPECT_EQ(BestScore(std::vector<float>{-0.5F, -0.25F, 0, 0.125F}, weights, 4), Squash(0.125F));
  EXPECT_EQ(BestScore(std::vector<float>{-0.5F, -0.25F, 0, 0.125F}, weights, 0), -Squash(0.125F));
}

TEST(BestScoreTest, WeightsEachSimilarity) {
  const std::vector<float> weights{2, 1, 4};
  EXPECT_EQ(BestScore(std::vector<float>{0.5F, 0.75F, 0.125F}, weights, 2), Squash(1.0F));
  EXPECT_EQ(BestScore(std::vector<float>{0.5F, 0.75F, 0.375F}, weights, 2), -Squash(1.5F));
}

TEST(BestScoreTest, NeverExceedsItsCeilings) {
  constexpr std::uint64_t kSeed = 13;
  SeededRandom random(kSeed);
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::size_t count = random.Between(1, 8);
    const std::size_t positive = random.Below(count + 1);
    std::vector<float> ends(count);
    std::vector<float> weights(count);
    std::vector<float> similarities(count);
    for (std::size_t i = 0; i < count; ++i) {
      ends[i] = random.Signed();
      weights[i] = std::abs(random.Wild(-4, 4));
      const float distance = random.OneIn(4) ? 0 : std::abs(random.Signed());
      similarities[i] = positive > 0 ? ends[i] - distance : ends[i] + distance;
    }
    const float ceiling = positive > 0 ? BestScoreCeiling(std::span(ends).first(positive),
                                                          std::span(weights).first(positive))
                                       : BestScoreCeilingOfFloors(ends, weights);
    ASSERT_LE(BestScore(similarities, weights, positive), ceiling)
        << "trial " << trial << ", seed " << kSeed;
  }
}

TEST(SumScoresTest, AddsPositivesAndSubtractsNegatives) {
  const std::vector<float> weights{1, 2, 4};
  EXPECT_EQ(SumScores(std::vector<float>{0.5F, 0.25F, 0.125F}, weights, 2), 0.5F);
  EXPECT_EQ(SumScores(std::vector<float>{0.5F, 0.25F, 0.125F}, weights, 0), -1.5F);
  EXPECT_FALSE(std::signbit(SumScores(std::vector<float>{0.5F, 0.5F}, std::vector<float>{1, 1}, 1)))
      << "a zero is +0, as everywhere";
}

// Examples and a row of the same dimension, and their sum and bound.
struct SumCase {
  SumCase(std::size_t count, std::size_t dim, double length, SeededRandom& random)
      : examples(count, dim), row(1, dim), direction(1, dim), weights(count) {
    for (std::size_t i = 0; i < count; ++i) {
      for (float& value : examples[i]) value = random.Signed();
      weights[i] = random.OneIn(2) ? 1 : std::abs(random.Wild(-3, 3));
    }
    for (float& value : row[0]) value = random.Signed();
    double squares = 0;
    for (const float value : row[0]) squares += double{value} * value;
    for (float& value : row[0]) value = static_cast<float>(value / std::sqrt(squares) * length);
  }

  float Sum(std::size_t positive) const {
    std::vector<float> similarities;
    for (std::size_t i = 0; i < weights.size(); ++i)
      similarities.push_back(CanonicalScoreReference(examples[i], row[0]));
    return SumScores(similarities, weights, positive);
  }
  SumBound Bound(std::size_t positive, double longest) {
    const MatrixView view = examples.view();
    return BoundSums(view.data(), view.padded_dim(), view.dim(), weights, positive, longest,
                     direction[0].data());
  }
  float DirectionScore() const { return CanonicalScoreReference(direction[0], row[0]); }

  PaddedRows examples;
  PaddedRows row;
  PaddedRows direction;
  std::vector<float> weights;
};

TEST(SumBoundTest, HoldsAndIsNotLoose) {
  constexpr std::uint64_t kSeed = 14;
  SeededRandom random(kSeed);
  int needed = 0;  // where the sum exceeds the estimate from the direction alone
  double widest = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::size_t count = random.Between(1, 12);
    const std::size_t positive = random.Below(count + 1);
    const double length = random.OneIn(3) ? 30 : 1;
    SumCase drawn(count, random.Between(1, 96), length, random);
    const SumBound bound = drawn.Bound(positive, length * (1 + 0x1p-20));
    if (bound.scale == 0) continue;
    const double estimate = bound.scale * drawn.DirectionScore();
    const double sum = drawn.Sum(positive);
    ASSERT_LE(sum, estimate + bound.slack) << "trial " << trial << ", seed " << kSeed;
    ASSERT_GE(sum, estimate - bound.slack) << "trial " << trial << ", seed " << kSeed;
    if (sum > estimate) ++needed;
    double reach = 0;
    for (std::size_t i = 0; i < count; ++i)
      reach += drawn.weights[i] * std::sqrt(static_cast<double>(drawn.examples.dim()));
    widest = std::max(widest, bound.slack / (reach * length));
  }
  EXPECT_GT(needed, 1'000) << "a bound that is never needed proves nothing";
  EXPECT_LT(widest, 3e-6) << "of the weights times lengths";
}

TEST(SumBoundTest, HasScaleZeroWhenNoDirectionIsLeft) {
  SeededRandom random(15);
  SumCase opposite(2, 7, 1, random);
  std::ranges::copy(opposite.examples[0], opposite.examples[1].begin());
  opposite.weights = {1, 1};
  EXPECT_EQ(opposite.Bound(1, 1).scale, 0);
  EXPECT_GT(opposite.Bound(2, 1).scale, 0);
}

TEST(SumBoundTest, HasScaleZeroForExamplesOfZeros) {
  SeededRandom random(17);
  SumCase zeros(2, 7, 1, random);
  for (std::size_t example = 0; example < 2; ++example) {
    std::ranges::fill(zeros.examples[example], 0.0F);
  }
  EXPECT_EQ(zeros.Bound(1, 1).scale, 0);
}

TEST(SumBoundTest, PadsTheDirectionWithZeros) {
  SeededRandom random(16);
  SumCase drawn(3, 5, 1, random);
  ASSERT_GT(drawn.Bound(3, 1).scale, 0);
  const float* const direction = drawn.direction.view().PaddedRow(0);
  for (std::size_t i = 5; i < kLaneCount; ++i) EXPECT_EQ(direction[i], 0);
}

}  // namespace
}  // namespace simile::certificate

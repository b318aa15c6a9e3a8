#include "certificate/score_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "certificate/canonical_score.h"
#include "certificate/rotation.h"
#include "certificate/seeded_random.h"

namespace simile::certificate {
namespace {

using tests::SeededRandom;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A gate to compute for a query and a block of rows.
struct GateCase {
  float threshold = 0;
  double bound = 0;
  float query_scale = 1;
  float row_scale = 1;
  std::int32_t offset = 0;

  std::int32_t Least() const {
    const double steps_per_unit =
        1.0 / static_cast<double>(query_scale) * (1.0 / static_cast<double>(row_scale));
    return LeastSumToKeep(threshold, bound, steps_per_unit, offset);
  }
  // The least sum to keep, as a real number: from here on the row's cheap score plus the bound
  // reaches the threshold. Rounded by 2^-64 of it, at most a thousandth of a sum within +-2^53.
  long double Edge() const {
    const long double unit =
        static_cast<long double>(query_scale) * static_cast<long double>(row_scale);
    return (static_cast<long double>(threshold) - static_cast<long double>(bound)) / unit + offset;
  }
};

GateCase DrawGate(SeededRandom& random) {
  GateCase drawn;
  drawn.query_scale = std::fabs(random.Wild(-67, 54));
  drawn.row_scale = std::fabs(random.Wild(-67, 54));
  drawn.offset = static_cast<std::int32_t>(random.Below(1U << 27)) - (1 << 26);
  const double unit = static_cast<double>(drawn.query_scale) * static_cast<double>(drawn.row_scale);
  // Edges from below one step to far beyond the clamps.
  const double steps = std::ldexp(static_cast<double>(random.Signed()),
                                  static_cast<int>(random.Below(random.OneIn(4) ? 70 : 31)));
  drawn.threshold = static_cast<float>(std::clamp(steps * unit, -0x1p127, 0x1p127));
  drawn.bound = random.OneIn(3) ? std::fabs(static_cast<double>(drawn.threshold)) *
                                      std::fabs(static_cast<double>(random.Signed()))
                                : unit * static_cast<double>(random.Below(1U << 20));
  return drawn;
}

TEST(FloatAboveTest, RoundsUpAndNotFurther) {
  constexpr std::uint64_t kSeed = 35;
  SeededRandom random(kSeed);
  EXPECT_EQ(FloatAbove(0), 0.0F);
  EXPECT_EQ(FloatAbove(0.5), 0.5F);
  EXPECT_EQ(FloatAbove(0x1p-200), FLT_TRUE_MIN);
  for (int draw = 0; draw < 100'000; ++draw) {
    const float below = std::fabs(random.OneIn(4) ? random.Subnormal() : random.Wild(-126, 100));
    const float above = std::nextafter(below, FLT_MAX);
    const double middle = (static_cast<double>(below) + static_cast<double>(above)) / 2;
    ASSERT_EQ(FloatAbove(static_cast<double>(below)), below) << "seed " << kSeed;
    ASSERT_EQ(FloatAbove(std::nextafter(static_cast<double>(below), DBL_MAX)), above);
    ASSERT_EQ(FloatAbove(middle), above) << "seed " << kSeed << ", " << below;
  }
}

TEST(LeastSumToKeepTest, DropsOnlyWhatLiesStrictlyBelowTheThreshold) {
  constexpr std::uint64_t kSeed = 31;
  SeededRandom random(kSeed);
  for (int draw = 0; draw < 300'000; ++draw) {
    const GateCase drawn = DrawGate(random);
    const std::int32_t least = drawn.Least();
    ASSERT_LE(std::abs(least), kGateMax) << "seed " << kSeed << ", draw " << draw;
    // At the lower clamp nothing is dropped, since no sum lies below it.
    if (least == -kGateMax) continue;
    // The greatest sum that may be dropped, with half a step for the rounding of Edge.
    ASSERT_LT(static_cast<long double>(least) - 1, drawn.Edge() - 0.5L)
        << "seed " << kSeed << ", draw " << draw;
  }
}

TEST(LeastSumToKeepTest, KeepsNoMoreThanFourSumsTooMany) {
  constexpr std::uint64_t kSeed = 32;
  SeededRandom random(kSeed);
  for (int draw = 0; draw < 300'000; ++draw) {
    const GateCase drawn = DrawGate(random);
    const std::int32_t least = drawn.Least();
    if (least == kGateMax) continue;
    ASSERT_GT(static_cast<long double>(least), drawn.Edge() - 4)
        << "seed " << kSeed << ", draw " << draw;
  }
}

TEST(LeastSumToKeepTest, IsRightAtEveryEdgeOfSmallNumbers) {
  // Unit steps, so that the edges are known: a row may be dropped when sum + bound < threshold.
  for (int threshold = -50; threshold <= 50; ++threshold) {
    for (int bound = 0; bound <= 5; ++bound) {
      const std::int32_t least = LeastSumToKeep(static_cast<float>(threshold), bound, 1, 0);
      ASSERT_LE(least, threshold - bound) << threshold << ", " << bound;
      ASSERT_GE(least, threshold - bound - 2) << threshold << ", " << bound;
    }
  }
}

TEST(LeastSumToKeepTest, KeepsEverythingWithoutAThreshold) {
  EXPECT_EQ(LeastSumToKeep(-kInfinity, 1, 1, 0), -kGateMax);
  EXPECT_EQ(LeastSumToKeep(-kInfinity, 0, 0x1p250, 1 << 26), -kGateMax);
  EXPECT_EQ(LeastSumToKeep(-FLT_MAX, 0x1p120, 0x1p250, 1 << 26), -kGateMax);
}

TEST(LeastSumToKeepTest, DropsEverythingBelowAThresholdBeyondReach) {
  EXPECT_EQ(LeastSumToKeep(kInfinity, 1, 1, 0), kGateMax);
  EXPECT_EQ(LeastSumToKeep(FLT_MAX, 0x1p120, 0x1p250, -(1 << 26)), kGateMax);
}

TEST(LeastSumToKeepTest, KeepsSumsAndGatesWithinInt32) {
  // 4,096 columns of the greatest codes against the greatest bytes, on top of the greatest start.
  constexpr std::int64_t kSumMax = std::int64_t{4'096} * kByteCodeMax * 255;
  EXPECT_LT(kSumMax, kGateMax);
  EXPECT_LT(kSumMax + kGateMax, std::numeric_limits<std::int32_t>::max());
}

// A score or bound of any size that occurs in the engine: products of two scales are not below
// 2^-252.
double DrawScore(SeededRandom& random) {
  switch (random.Below(10)) {
    case 0:
      return 0;
    case 1:
      return static_cast<double>(random.Subnormal());
    case 2:  // around the least floats, and far below them
      return static_cast<double>(random.Wild(-126, -100)) *
             std::ldexp(1.0, -static_cast<int>(random.Below(130)));
    case 3:
      return static_cast<double>(random.Wild(-60, 40)) * static_cast<double>(random.Wild(-60, 40));
    case 4:  // a float, where nothing need be rounded
      return static_cast<double>(random.Signed());
    default:
      return static_cast<double>(random.Signed()) + static_cast<double>(random.Signed()) * 0x1p-29;
  }
}

double DrawBound(double score, SeededRandom& random) {
  switch (random.Below(6)) {
    case 0:
      return std::fabs(DrawScore(random));
    case 1:  // lower or upper near zero
      return std::fabs(score) * (1 + static_cast<double>(random.Signed()) * 0x1p-40);
    case 2:
      return std::fabs(score) * std::ldexp(1.0, static_cast<int>(random.Below(60)) - 30);
    default:
      return std::fabs(score * static_cast<double>(random.Signed())) + 0x1p-149;
  }
}

// Whether limit <= a - b - slack, decided without harmful rounding: sum + error is exactly a - b
// (Knuth's TwoSum).
bool AtMost(float limit, double a, double b, long double slack) {
  const long double x = a;
  const long double y = -static_cast<long double>(b);
  const long double sum = x + y;
  const long double y_share = sum - x;
  const long double error = (x - (sum - y_share)) + (y - y_share);
  return static_cast<long double>(limit) - sum <= error - slack;
}

TEST(ScoreRangeTest, HoldsTheScoreWithItsBoundAndOneRounding) {
  constexpr std::uint64_t kSeed = 33;
  SeededRandom random(kSeed);
  for (int draw = 0; draw < 1'000'000; ++draw) {
    const double score = DrawScore(random);
    const double bound = DrawBound(score, random);
    const auto [lower, upper] = MakeRange(score, bound);
    // The product of the integer sum and the scales was rounded once.
    const long double rounding = std::fabs(static_cast<long double>(score)) * 0x1p-53L;
    ASSERT_TRUE(AtMost(lower, score, bound, rounding))
        << "seed " << kSeed << ", draw " << draw << ": " << score << " - " << bound;
    ASSERT_TRUE(AtMost(-upper, -score, bound, rounding))
        << "seed " << kSeed << ", draw " << draw << ": " << score << " + " << bound;
    // A range is never a point: lower == upper marks a known score.
    ASSERT_LT(lower, upper) << "seed " << kSeed << ", draw " << draw;
  }
}

TEST(ScoreRangeTest, IsNoWiderThanAFewRoundings) {
  constexpr std::uint64_t kSeed = 34;
  SeededRandom random(kSeed);
  for (int draw = 0; draw < 1'000'000; ++draw) {
    const double score = DrawScore(random);
    const double bound = DrawBound(score, random);
    const auto [lower, upper] = MakeRange(score, bound);
    const double width = static_cast<double>(upper) - static_cast<double>(lower);
    const double allowed = 2 * bound + (std::fabs(score) + bound) * 0x1p-21 + 4 * 0x1p-149;
    ASSERT_LE(width, allowed) << "seed " << kSeed << ", draw " << draw << ": " << score << " +- "
                              << bound;
  }
}

TEST(QuantizedNormsTest, IncludesTheGreaterOfBoth) {
  QuantizedNorms norms{.length = 1, .residual = 5, .decoded = 2};
  norms.Include({.length = 3, .residual = 4, .decoded = 6});
  EXPECT_EQ(norms.length, 3);
  EXPECT_EQ(norms.residual, 5);
  EXPECT_EQ(norms.decoded, 6);
}

TEST(QuantizedNormsTest, RoundsEveryMeasureUp) {
  constexpr std::uint64_t kSeed = 35;
  SeededRandom random(kSeed);
  constexpr long double kError = kRotationError;
  constexpr long double kSums =
      4'162 * 0x1p-53L;  // the greatest relative rounding of the sums of squares
  for (int draw = 0; draw < 100'000; ++draw) {
    const double length_squared = std::pow(static_cast<double>(random.Wild(-60, 59)), 2);
    const double share = std::fabs(static_cast<double>(random.Signed()));
    const QuantizedSquares squares{.residual = length_squared * share * 0x1p-10,
                                   .decoded = length_squared * share};
    const QuantizedNorms norms = BoundNorms(length_squared, squares);
    const auto root = [&](double square) {
      return std::sqrt(static_cast<long double>(square) * (1 + kSums));
    };
    const long double length = root(length_squared) / (1 - kError);
    ASSERT_GE(static_cast<long double>(norms.length), length) << "seed " << kSeed;
    ASSERT_GE(static_cast<long double>(norms.residual), root(squares.residual) + kError * length)
        << "seed " << kSeed;
    ASSERT_GE(static_cast<long double>(norms.decoded), root(squares.decoded)) << "seed " << kSeed;
  }
}

TEST(ScoreBoundTest, IsNoLessThanItsTermsInLongDouble) {
  constexpr std::uint64_t kSeed = 36;
  SeededRandom random(kSeed);
  const auto draw_norms = [&] {
    return QuantizedNorms{.length = std::fabs(static_cast<double>(random.Wild(-60, 60))),
                          .residual = std::fabs(static_cast<double>(random.Wild(-80, 52))),
                          .decoded = std::fabs(static_cast<double>(random.Wild(-60, 60)))};
  };
  for (const std::size_t dim : {1U, 32U, 33U, 384U, 4'096U}) {
    const ScoreBound bound(dim);
    const std::size_t roundings = (dim + 31) / 32 + 5;
    const auto n = static_cast<long double>(roundings);
    const long double gamma = n * 0x1p-24L / (1 - n * 0x1p-24L);
    for (int draw = 0; draw < 20'000; ++draw) {
      const QuantizedNorms query = draw_norms();
      const QuantizedNorms rows = draw_norms();
      const long double expected =
          static_cast<long double>(query.residual) * static_cast<long double>(rows.decoded) +
          static_cast<long double>(query.length) * (static_cast<long double>(rows.residual) +
                                                    gamma * static_cast<long double>(rows.length)) +
          static_cast<long double>(dim) * 0x1p-149L;
      const auto actual = static_cast<long double>(bound(query, rows));
      ASSERT_GE(actual, expected) << "seed " << kSeed << ", dim " << dim;
      ASSERT_LE(actual, expected * (1 + 0x1p-37L)) << "seed " << kSeed << ", dim " << dim;
    }
  }
}

TEST(ScoreBoundTest, CountsUnderflowAlone) {
  EXPECT_GE(ScoreBound(384)({}, {}), 384 * 0x1p-149);
  EXPECT_EQ(ScoreBound(384)({}, {}), CanonicalScoreError(384, 0, 0));
}

}  // namespace
}  // namespace simile::certificate

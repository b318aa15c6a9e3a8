#include "certificate/fp16_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "certificate/canonical_score.h"
#include "certificate/seeded_random.h"
#include "simile/limits.h"
#include "simile/matrix_view.h"

namespace simile::certificate {
namespace {

using tests::SeededRandom;

constexpr double kGateMax = 1.125;

// A sum as a tensor core may form it: from any start, in any order, each step truncated to 24 bits.
float TruncatedSum(float start, const std::vector<double>& products) {
  const auto truncated = [](double value) {
    const auto nearest = static_cast<float>(value);
    return std::abs(static_cast<double>(nearest)) > std::abs(value) ? std::nextafter(nearest, 0.0F)
                                                                    : nearest;
  };
  float sum = start;
  for (const double product : products) sum = truncated(static_cast<double>(sum) + product);
  return sum;
}

// A vector, scaled and rounded as the engine does it.
struct Fp16Vector {
  std::vector<float> values;  // representable in fp16
  double residual = 0;
};
Fp16Vector Fp16Of(const std::vector<float>& vector, double unit) {
  Fp16Vector fp16;
  double squares = 0;
  for (const float value : vector) {
    const auto scaled = static_cast<float>(value * unit);
    const auto rounded = static_cast<float>(static_cast<_Float16>(scaled));
    fp16.values.push_back(rounded);
    const double lost = value * unit - static_cast<double>(rounded);
    squares += lost * lost;
  }
  fp16.residual = std::sqrt(squares);
  return fp16;
}

enum class Kind : std::uint8_t { kUniform, kSameSign, kSparse, kTiny, kCount };

std::vector<float> Draw(Kind kind, std::size_t dim, double length, SeededRandom& random) {
  std::vector<float> vector(dim);
  for (float& value : vector) {
    value = random.Signed();
    if (kind == Kind::kSameSign) value = std::abs(value) * 0x1p-3F + 1;
    if (kind == Kind::kSparse && !random.OneIn(8)) value = 0;
    if (kind == Kind::kTiny && !random.OneIn(8)) value *= 0x1p-20F;
  }
  vector[random.Below(dim)] = 1;
  const double scale = length / Length(vector);
  for (float& value : vector) value = static_cast<float>(value * scale);
  return vector;
}

void ExpectWithinBound(std::uint64_t seed) {
  SeededRandom random(seed);
  const std::size_t dim = random.Between(1, random.OneIn(10) ? 4'096 : 400);
  const auto kind = static_cast<Kind>(random.Below(static_cast<std::size_t>(Kind::kCount)));
  const bool unit_length = random.OneIn(2);
  const auto length = [&] {
    return unit_length ? 1.0 : static_cast<double>(std::abs(random.Wild(-59, 58)));
  };
  const std::vector<float> row = Draw(kind, dim, length(), random);
  const std::vector<float> query = random.OneIn(3) ? row : Draw(kind, dim, length(), random);
  const double row_unit = UnitOf(Length(row)), query_unit = UnitOf(Length(query));
  const Fp16Vector x = Fp16Of(row, row_unit), q = Fp16Of(query, query_unit);
  std::vector<double> products(dim);
  for (std::size_t i = 0; i < dim; ++i) {
    products[i] = static_cast<double>(x.values[i]) * q.values[i];
  }
  const double canonical =
      static_cast<double>(CanonicalScoreReference(row, query)) * row_unit * query_unit;
  const double gate = kGateMax * static_cast<double>(random.Signed());
  const auto from_gate = static_cast<double>(TruncatedSum(static_cast<float>(-gate), products));
  const double with_gate = static_cast<double>(
      static_cast<float>(from_gate + static_cast<double>(static_cast<float>(gate))));
  const auto stored = static_cast<double>(static_cast<_Float16>(TruncatedSum(0, products)));
  const std::size_t padded = PaddedDim(dim);
  ASSERT_LE(std::abs(with_gate - canonical),
            Fp16Bound(padded, x.residual, kGateMax, CheapStorage::kFloat))
      << "seed " << seed << ", dim " << dim;
  ASSERT_LE(std::abs(stored - canonical),
            Fp16Bound(padded, x.residual, kGateMax, CheapStorage::kHalf))
      << "seed " << seed << ", dim " << dim;
}

TEST(Fp16BoundTest, HoldsForTruncatedSumsOfAnyVectors) {
  for (std::uint64_t seed = 0; seed < 4'000; ++seed) {
    ExpectWithinBound(seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Fp16BoundTest, IsSmallEnoughToBeUseful) {
  constexpr double kResidual = 2.2e-4;  // of random unit vectors
  EXPECT_LT(Fp16Bound(384, kResidual, kGateMax, CheapStorage::kFloat), 1.2e-3F);
  EXPECT_LT(Fp16Bound(384, kResidual, kGateMax, CheapStorage::kHalf), 1.7e-3F);
}

TEST(Fp16BoundTest, GrowsWithEverySourceOfError) {
  const float base = Fp16Bound(384, 2e-4, 1, CheapStorage::kFloat);
  EXPECT_GT(Fp16Bound(768, 2e-4, 1, CheapStorage::kFloat), base);
  EXPECT_GT(Fp16Bound(384, 3e-4, 1, CheapStorage::kFloat), base);
  EXPECT_GT(Fp16Bound(384, 2e-4, 2, CheapStorage::kFloat), base);
  EXPECT_GT(Fp16Bound(384, 2e-4, 1, CheapStorage::kHalf), base);
}

TEST(UnitOfTest, BringsEveryLengthToAtMostOne) {
  SeededRandom random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto length = static_cast<double>(std::abs(random.Wild(-60, 59)));
    const double unit = UnitOf(length);
    EXPECT_LE(length * unit, kUnitLengthMax);
    EXPECT_GT(length * unit, 0.5 - 1e-12);
    int exponent = 0;
    EXPECT_EQ(std::frexp(unit, &exponent), 0.5) << "a power of two";
  }
  EXPECT_EQ(UnitOf(0), 1);
  EXPECT_EQ(UnitOf(1), 1);
  EXPECT_EQ(UnitOf(kNormMax), 0x1p-60);
}

}  // namespace
}  // namespace simile::certificate

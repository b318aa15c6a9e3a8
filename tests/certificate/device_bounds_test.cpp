#include "certificate/device_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "certificate/canonical_score.h"
#include "certificate/seeded_random.h"
#include "emulated_cuda/aligned_sum.h"
#include "simile/limits.h"
#include "simile/matrix_view.h"

namespace simile::certificate {
namespace {

using emulated_cuda::SumRule;
using tests::SeededRandom;

constexpr double kGateMax = 1.125;

// How a tensor core may form a sum: in one order, cut to 24 bits after each step, or as known ones.
constexpr SumRule kRules[] = {
    {1, 40}, emulated_cuda::kVoltaSums, emulated_cuda::kAmpereSums, emulated_cuda::kHopperSums};

float TensorCoreSum(const SumRule& rule, float start, const std::vector<double>& products) {
  float sum = start;
  for (std::size_t i = 0; i < products.size(); i += rule.block) {
    sum = emulated_cuda::AddAligned(sum, products.data() + i,
                                    std::min(rule.block, products.size() - i), rule.fraction_bits);
  }
  return sum;
}

// The steps of 2^-23 that a sum of so many products may lose (docs/design/tensor-core-sums.md).
double DerivedSteps(const SumRule& rule, std::size_t count) {
  const auto products = static_cast<double>(count);
  return products * std::ldexp(1, 23 - rule.fraction_bits) +
         std::ceil(products / static_cast<double>(rule.block));
}

// GCC 12 knows _Float16 in C++ only for x86.
#if defined(__aarch64__)
using Fp16 = __fp16;
#else
using Fp16 = _Float16;
#endif

// A vector, scaled and rounded as the engine does it.
struct Fp16Vector {
  std::vector<float> values;  // representable in fp16
  double residual = 0;
};
Fp16Vector ToFp16(const std::vector<float>& vector, double unit) {
  Fp16Vector fp16;
  double squares = 0;
  for (const float value : vector) {
    const auto scaled = static_cast<float>(value * unit);
    const auto rounded = static_cast<float>(static_cast<Fp16>(scaled));
    fp16.values.push_back(rounded);
    const double lost = value * unit - static_cast<double>(rounded);
    squares += lost * lost;
  }
  fp16.residual = std::sqrt(squares);
  return fp16;
}

// kMostCut: one term of a sum is near 1, and the others near the last bit that is kept beside it.
enum class Kind : std::uint8_t { kUniform, kSameSign, kSparse, kTiny, kMostCut, kCount };

std::vector<float> Draw(Kind kind, std::size_t dim, double length, SeededRandom& random) {
  std::vector<float> vector(dim);
  for (float& value : vector) {
    value = random.Signed();
    if (kind == Kind::kSameSign) value = std::abs(value) * 0x1p-3F + 1;
    if (kind == Kind::kSparse && !random.OneIn(8)) value = 0;
    if (kind == Kind::kTiny && !random.OneIn(8)) value *= 0x1p-20F;
    if (kind == Kind::kMostCut) value = 0x1.ff8p-12F;
  }
  vector[kind == Kind::kMostCut ? 0 : random.Below(dim)] = 1;
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
  const double row_unit = ChooseUnit(Length(row)), query_unit = ChooseUnit(Length(query));
  const Fp16Vector x = ToFp16(row, row_unit), q = ToFp16(query, query_unit);
  std::vector<double> products(dim);
  for (std::size_t i = 0; i < dim; ++i) {
    products[i] = static_cast<double>(x.values[i]) * q.values[i];
  }
  const double canonical =
      static_cast<double>(CanonicalScoreReference(row, query)) * row_unit * query_unit;
  const double gate = kGateMax * static_cast<double>(random.Signed());
  const SumRule& rule = kRules[random.Below(std::size(kRules))];
  const auto from_gate =
      static_cast<double>(TensorCoreSum(rule, static_cast<float>(-gate), products));
  const double with_gate = static_cast<double>(
      static_cast<float>(from_gate + static_cast<double>(static_cast<float>(gate))));
  const auto stored = static_cast<double>(static_cast<Fp16>(TensorCoreSum(rule, 0, products)));
  const std::size_t padded = PaddedDim(dim);
  ASSERT_LE(std::abs(with_gate - canonical),
            Fp16Bound(padded, x.residual, kGateMax, CheapStorage::kFloat))
      << "seed " << seed << ", dim " << dim;
  ASSERT_LE(std::abs(stored - canonical),
            Fp16Bound(padded, x.residual, kGateMax, CheapStorage::kHalf))
      << "seed " << seed << ", dim " << dim;
}

TEST(Fp16BoundTest, HoldsForEveryRuleOfTensorCoresAndAnyVectors) {
  for (std::uint64_t seed = 0; seed < 4'000; ++seed) {
    ExpectWithinBound(seed);
    if (HasFatalFailure()) return;
  }
}

// What a sum from `start` loses, in steps of 2^-23 of the magnitudes added.
double StepsLost(const SumRule& rule, float start, const std::vector<double>& products) {
  double exact = static_cast<double>(start), magnitudes = std::abs(exact);
  for (const double product : products) {
    exact += product;
    magnitudes += std::abs(product);
  }
  const auto sum = static_cast<double>(TensorCoreSum(rule, start, products));
  return magnitudes == 0 ? 0 : std::abs(sum - exact) / (magnitudes * 0x1p-23);
}

TEST(TensorCoreSumTest, LosesNoMoreThanIsDerivedAndThatIsAssumed) {
  SeededRandom random(3);
  for (int i = 0; i < 2'000; ++i) {
    const SumRule& rule = kRules[random.Below(std::size(kRules))];
    std::vector<double> products(random.Between(1, 600));
    const bool one_sign = random.OneIn(2);
    for (double& product : products) {
      product = static_cast<double>(random.Wild(-40, 0));
      if (one_sign) product = std::abs(product);
    }
    const float start = random.OneIn(2) ? 0 : random.Signed();
    const double derived = DerivedSteps(rule, products.size());
    ASSERT_LE(StepsLost(rule, start, products), derived)
        << i << ": block " << rule.block << ", count " << products.size();
    ASSERT_LE(derived, 2.0 * static_cast<double>(PaddedDim(products.size())) + 16);
  }
}

// The products after the first lose almost a whole step each; a few lose all they have, so that the
// cut of each block's sum loses as much as it can.
TEST(TensorCoreSumTest, LosesNearlyAllThatIsDerivedFromTheTermsThatAreCutMost) {
  for (const SumRule& rule : kRules) {
    if (rule.block == 1) continue;
    const double step = std::ldexp(1, -rule.fraction_bits);
    for (const std::size_t count : {std::size_t{384}, std::size_t{4'096}}) {
      std::vector<double> products(count, 1.999 * step);
      for (std::size_t i = rule.block - 1; i < count; i += rule.block) products[i] = 0.999 * step;
      products[0] = 1;
      const double lost = StepsLost(rule, 0, products), derived = DerivedSteps(rule, count);
      EXPECT_LE(lost, derived);
      EXPECT_GE(lost, 0.78 * derived) << "block " << rule.block << ", count " << count;
      const double from_start = StepsLost(rule, -1.125F, products);
      EXPECT_LE(from_start, derived);
      for (double& product : products) product = -product;
      products[0] = 0;
      EXPECT_GE(StepsLost(rule, -1, products), 0.78 * derived) << "a start instead of a product";
    }
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
    const double unit = ChooseUnit(length);
    EXPECT_LE(length * unit, kUnitLengthMax);
    EXPECT_GT(length * unit, 0.5 - 1e-12);
    int exponent = 0;
    EXPECT_EQ(std::frexp(unit, &exponent), 0.5) << "a power of two";
  }
  EXPECT_EQ(ChooseUnit(0), 1);
  EXPECT_EQ(ChooseUnit(1), 1);
  EXPECT_EQ(ChooseUnit(kNormMax), 0x1p-60);
}

// Lengths next to both limits of unit length, where fp32 cannot tell.
TEST(UnitIsOneTest, NeverAcceptsALengthOutsideTheLimits) {
  SeededRandom random(31);
  std::size_t certain = 0, uncertain = 0;
  for (const std::size_t dim : {32U, 384U, 4'096U}) {
    std::vector<float> vector(dim), copy(dim);
    for (int i = 0; i < 3'000; ++i) {
      const double spread = std::ldexp(1, -static_cast<int>(random.Between(10, 24)));
      const double side = random.Between(0, 1) == 0 ? -1 : 1;
      const double length = (i % 2 == 0 ? kUnitLengthMax : 0.5) * (1 + side * spread);
      double squares = 0;
      for (float& value : vector) {
        value = static_cast<float>(random.Between(1, 1'000)) - 500.5F;
        squares += static_cast<double>(value) * static_cast<double>(value);
      }
      const double scale = length / std::sqrt(squares);
      for (float& value : vector) value = static_cast<float>(value * scale);
      const float sum = CopyAndSquare(vector.data(), dim, copy.data());
      ASSERT_EQ(copy, vector);
      const double exact = Length(vector);
      if (UnitIsOne(sum, dim)) {
        ASSERT_TRUE(exact > 0.5 && exact <= kUnitLengthMax) << dim << ", " << exact;
        ++certain;
      } else if (exact > 0.5 && exact <= kUnitLengthMax) {
        ++uncertain;
      }
    }
    vector.assign(dim, 0);
    vector[0] = 1;
    EXPECT_TRUE(UnitIsOne(CopyAndSquare(vector.data(), dim, copy.data()), dim));
  }
  EXPECT_GT(certain, 1'000U);
  EXPECT_GT(uncertain, 100U) << "the limits were not tried";
}

}  // namespace
}  // namespace simile::certificate

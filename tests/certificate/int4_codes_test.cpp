#include "certificate/int4_codes.h"

#include <gtest/gtest.h>

#include <array>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "certificate/rotation.h"
#include "certificate/seeded_random.h"

namespace simile::certificate {
namespace {

constexpr std::int32_t kNarrowCodeMax = 63;

using tests::SeededRandom;

TEST(Int4CodesTest, AreSymmetricalAndAscendToTheLargestCode) {
  for (const std::int32_t code_max : {kByteCodeMax, kNarrowCodeMax}) {
    const Int4Codes codes(code_max);
    for (std::size_t int4 = 0; int4 < Int4Codes::kCount; ++int4) {
      EXPECT_EQ(codes.code(int4), -codes.code(Int4Codes::kCount - 1 - int4)) << int4;
    }
    for (std::size_t int4 = 1; int4 < Int4Codes::kCount; ++int4)
      EXPECT_LT(codes.code(int4 - 1), codes.code(int4)) << int4;
    EXPECT_EQ(codes.code(Int4Codes::kCount - 1), code_max);
  }
}

TEST(Int4CodesTest, FindsTheNearest) {
  for (const std::int32_t code_max : {kByteCodeMax, kNarrowCodeMax}) {
    const Int4Codes codes(code_max);
    for (std::int32_t code = -code_max; code <= code_max; ++code) {
      const std::int32_t found = std::abs(codes.code(codes.Nearest(code)) - code);
      for (std::size_t int4 = 0; int4 < Int4Codes::kCount; ++int4)
        ASSERT_LE(found, std::abs(codes.code(int4) - code)) << code;
    }
  }
}

// The squares recomputed from the resulting int4 codes, in long double.
TEST(Int4CodesTest, MeasuresTheResidualOfItsCodes) {
  constexpr std::uint64_t kSeed = 24;
  SeededRandom random(kSeed);
  for (std::size_t draw = 0; draw < 500; ++draw) {
    const Int4Codes codes(random.OneIn(2) ? kByteCodeMax : kNarrowCodeMax);
    const std::size_t count = 64 * random.Between(1, 4);
    const int exponent = static_cast<int>(random.Below(121)) - 60;
    std::vector<float> values(count * kSideBySide);
    for (float& value : values) {
      value = std::ldexp(random.Signed(), exponent);
      if (random.OneIn(8)) value = random.Subnormal();
    }
    const float scale = codes.ScaleFor(std::ldexp(random.OneIn(4) ? 1e-6 : 0.3, 2 * exponent));
    std::vector<std::uint8_t> int4(values.size());
    std::array<QuantizedSquares, kSideBySide> squares;
    codes.Quantize(values.data(), count, scale, int4.data(), squares.data());
    const long double error = static_cast<long double>(count + 2) * 0x1p-53L;
    for (std::size_t side = 0; side < kSideBySide; ++side) {
      long double residual = 0;
      long double decoded = 0;
      for (std::size_t i = side; i < values.size(); i += kSideBySide) {
        ASSERT_LT(int4[i], Int4Codes::kCount);
        const long double back = static_cast<long double>(scale) * codes.code(int4[i]);
        const long double left = static_cast<long double>(values[i]) - back;
        residual += left * left;
        decoded += back * back;
      }
      ASSERT_LE(std::fabs(residual - static_cast<long double>(squares[side].residual)),
                residual * error)
          << "seed " << kSeed << ", draw " << draw;
      ASSERT_LE(std::fabs(decoded - static_cast<long double>(squares[side].decoded)),
                decoded * error)
          << "seed " << kSeed << ", draw " << draw;
    }
  }
}

// Max's table gives a mean squared error of 0.009497 for sixteen levels.
TEST(Int4CodesTest, LoseLittleOfNormallyDistributedNumbers) {
  constexpr std::uint64_t kSeed = 25;
  constexpr std::size_t kCount = 4'096;
  SeededRandom random(kSeed);
  std::vector<float> values(kCount * kSideBySide);
  for (float& value : values) {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log((random.Signed() + 1) / 2 + 1e-9));
    value = static_cast<float>(radius * std::cos(M_PI * static_cast<double>(random.Signed())));
  }
  const Int4Codes codes(kByteCodeMax);
  std::vector<std::uint8_t> int4(values.size());
  std::array<QuantizedSquares, kSideBySide> squares;
  codes.Quantize(values.data(), kCount, codes.ScaleFor(1), int4.data(), squares.data());
  for (const QuantizedSquares& each : squares)
    EXPECT_NEAR(each.residual / kCount, 0.0095, 0.001) << "seed " << kSeed;
}

TEST(Int4CodesTest, HaveAScaleForZeros) { EXPECT_EQ(Int4Codes(kByteCodeMax).ScaleFor(0), FLT_MIN); }

}  // namespace
}  // namespace simile::certificate

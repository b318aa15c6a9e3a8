#include "certificate/quantizer.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "certificate/rotation.h"
#include "certificate/seeded_random.h"

namespace simile::certificate {
namespace {

constexpr std::int32_t kNarrowCodeMax = 63;

using tests::SeededRandom;

struct Quantized {
  std::vector<std::int8_t> codes;
  QuantizedSquares squares;
};

Quantized QuantizeOne(const std::vector<float>& values, float scale, std::int32_t code_max) {
  Quantized quantized;
  quantized.codes.resize(values.size());
  Quantize<1>(values.data(), values.size(), scale, code_max, quantized.codes.data(),
              &quantized.squares);
  return quantized;
}

float FindLargest(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// The squares recomputed from the resulting codes, in long double.
void ExpectSquares(const std::vector<float>& values, float scale, const Quantized& quantized) {
  long double residual = 0;
  long double decoded = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const long double back = static_cast<long double>(scale) * quantized.codes[i];
    const long double left = static_cast<long double>(values[i]) - back;
    residual += left * left;
    decoded += back * back;
  }
  const long double error = static_cast<long double>(values.size() + 2) * 0x1p-53L;
  ASSERT_LE(std::fabs(residual - static_cast<long double>(quantized.squares.residual)),
            residual * error);
  ASSERT_LE(std::fabs(decoded - static_cast<long double>(quantized.squares.decoded)),
            decoded * error);
}

TEST(QuantizerTest, MeasuresTheResidualOfItsCodes) {
  constexpr std::uint64_t kSeed = 21;
  SeededRandom random(kSeed);
  for (std::size_t draw = 0; draw < 3'000; ++draw) {
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", draw " << draw);
    const std::int32_t code_max = random.OneIn(2) ? kByteCodeMax : kNarrowCodeMax;
    const std::size_t count = 64 * (random.OneIn(20) ? random.Between(1, 64) : 1);
    const int exponent = static_cast<int>(random.Below(121)) - 60;
    std::vector<float> values(count);
    for (float& value : values) {
      value = std::ldexp(random.Signed(), exponent);
      if (random.OneIn(8)) value = random.Subnormal();
      if (random.OneIn(8)) value = random.Wild(-126, -60);
    }
    // Its own scale, one of a block with larger vectors, or one that makes it clamp.
    const float largest = FindLargest(values) * (random.OneIn(3) ? 10 : 1);
    const float scale = ScaleFor(largest, code_max) * (random.OneIn(5) ? 0.01F : 1);
    const Quantized quantized = QuantizeOne(values, scale, code_max);
    for (const std::int8_t code : quantized.codes) ASSERT_LE(std::abs(code), code_max);
    ExpectSquares(values, scale, quantized);
    if (HasFatalFailure()) return;
  }
}

TEST(QuantizerTest, RoundsToTheNearestCode) {
  constexpr std::uint64_t kSeed = 22;
  SeededRandom random(kSeed);
  for (const std::int32_t code_max : {kByteCodeMax, kNarrowCodeMax}) {
    std::vector<float> values(4'096);
    for (float& value : values) value = random.Signed();
    const float scale = ScaleFor(FindLargest(values), code_max);
    const Quantized quantized = QuantizeOne(values, scale, code_max);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float left = values[i] - scale * static_cast<float>(quantized.codes[i]);
      ASSERT_LE(std::fabs(left), scale * 0.5001F) << "seed " << kSeed << ", " << values[i];
    }
  }
}

TEST(QuantizerTest, GivesTheLargestNumberTheLargestCode) {
  constexpr std::uint64_t kSeed = 23;
  SeededRandom random(kSeed);
  for (std::size_t draw = 0; draw < 10'000; ++draw) {
    const std::int32_t code_max = random.OneIn(2) ? kByteCodeMax : kNarrowCodeMax;
    const float largest = random.Wild(-66, 66);
    const Quantized quantized =
        QuantizeOne({largest, -largest}, ScaleFor(std::fabs(largest), code_max), code_max);
    ASSERT_EQ(quantized.codes[0], largest > 0 ? code_max : -code_max) << "seed " << kSeed;
    ASSERT_EQ(quantized.codes[1], -quantized.codes[0]) << "seed " << kSeed;
  }
}

TEST(QuantizerTest, ClampsWhatIsTooLarge) {
  const Quantized quantized = QuantizeOne({0x1p60F, -0x1p60F, 128, -127.5F}, 1, kByteCodeMax);
  EXPECT_EQ(quantized.codes, (std::vector<std::int8_t>{127, -127, 127, -127}));
  const Quantized narrow = QuantizeOne({0x1p60F, -0x1p60F, 64, -63.5F}, 1, kNarrowCodeMax);
  EXPECT_EQ(narrow.codes, (std::vector<std::int8_t>{63, -63, 63, -63}));
}

TEST(QuantizerTest, RoundsTiesToEven) {
  const Quantized quantized =
      QuantizeOne({0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 126.5F, -125.5F}, 1, kByteCodeMax);
  EXPECT_EQ(quantized.codes, (std::vector<std::int8_t>{0, 2, 2, 0, -2, 126, -126}));
}

TEST(QuantizerTest, GivesZerosTheCodeZero) {
  const float scale = ScaleFor(0, kByteCodeMax);
  EXPECT_GT(scale, 0);
  const Quantized quantized = QuantizeOne({0.0F, -0.0F, FLT_TRUE_MIN}, scale, kByteCodeMax);
  EXPECT_EQ(quantized.codes, (std::vector<std::int8_t>{0, 0, 0}));
  EXPECT_EQ(quantized.squares.decoded, 0);
  EXPECT_EQ(quantized.squares.residual, 0x1p-298);
}

TEST(QuantizerTest, QuantizesSideBySideAsItDoesOne) {
  constexpr std::uint64_t kSeed = 24;
  SeededRandom random(kSeed);
  constexpr std::size_t kCount = 192;
  std::vector<float> columns(kCount * kSideBySide);
  for (float& value : columns) value = random.Signed();
  const float scale = ScaleFor(FindLargest(columns), kByteCodeMax);
  std::vector<std::int8_t> codes(columns.size());
  std::vector<QuantizedSquares> squares(kSideBySide);
  std::vector<double> lengths(kSideBySide);
  Quantize<kSideBySide>(columns.data(), kCount, scale, kByteCodeMax, codes.data(), squares.data());
  SquaredLengths<kSideBySide>(columns.data(), kCount, lengths.data());
  for (std::size_t i = 0; i < kSideBySide; ++i) {
    std::vector<float> values(kCount);
    for (std::size_t row = 0; row < kCount; ++row) values[row] = columns[row * kSideBySide + i];
    const Quantized alone = QuantizeOne(values, scale, kByteCodeMax);
    for (std::size_t row = 0; row < kCount; ++row)
      ASSERT_EQ(codes[row * kSideBySide + i], alone.codes[row]) << "seed " << kSeed;
    EXPECT_EQ(squares[i].residual, alone.squares.residual);
    EXPECT_EQ(squares[i].decoded, alone.squares.decoded);
    double length = 0;
    SquaredLengths<1>(values.data(), kCount, &length);
    EXPECT_EQ(lengths[i], length);
  }
}

TEST(QuantizerTest, SumsSquaredLengthsInDouble) {
  constexpr std::uint64_t kSeed = 25;
  SeededRandom random(kSeed);
  for (const int exponent : {-60, 0, 60}) {
    std::vector<float> values(4'096);
    for (float& value : values) value = std::ldexp(random.Wild(-30, 0), exponent);
    long double expected = 0;
    for (const float value : values) {
      expected += static_cast<long double>(value) * static_cast<long double>(value);
    }
    double squares = 0;
    SquaredLengths<1>(values.data(), values.size(), &squares);
    EXPECT_LE(std::fabs(static_cast<long double>(squares) - expected), expected * 4'096 * 0x1p-53L)
        << "seed " << kSeed << ", exponent " << exponent;
  }
}

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

#include "service/packed_vector.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "simile/v1/types.pb.h"

namespace simile::service {
namespace {

v1::PackedVector Packed(v1::PackedVector::Format format, const std::string& data) {
  v1::PackedVector packed;
  packed.set_format(format);
  packed.set_data(data);
  return packed;
}

// What a binary16 number is by its definition (IEEE 754-2019, 3.4).
double ByDefinition(std::uint16_t half) {
  const double sign = (half & 0x8000U) != 0 ? -1 : 1;
  const int exponent = (half >> 10) & 0x1F;
  const double fraction = half & 0x3FF;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(FloatOfHalfTest, IsExactForEveryNumber) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (((half >> 10) & 0x1F) == 0x1F) continue;
    ASSERT_EQ(FloatOfHalf(half), ByDefinition(half)) << "half " << bits;
    ASSERT_EQ(std::signbit(FloatOfHalf(half)), (half & 0x8000U) != 0) << "half " << bits;
  }
}

TEST(FloatOfHalfTest, KeepsInfinityAndNaN) {
  EXPECT_EQ(FloatOfHalf(0x7C00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(FloatOfHalf(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(FloatOfHalf(0x7C01)));
  EXPECT_TRUE(std::isnan(FloatOfHalf(0xFE00)));
}

TEST(UnpackVectorTest, ReadsLittleEndianFloats) {
  // 1.0 and -2.5
  const auto values = UnpackVector(
      "v", Packed(v1::PackedVector::F32_LE, std::string("\0\0\x80\x3F\0\0\x20\xC0", 8)), 4'096);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, (std::vector<float>{1.0F, -2.5F}));
}

TEST(UnpackVectorTest, ReadsLittleEndianHalves) {
  // 1.0, -2.5 and the least subnormal
  const auto values = UnpackVector(
      "v", Packed(v1::PackedVector::F16_LE, std::string("\x00\x3C\x00\xC1\x01\x00", 6)), 4'096);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, (std::vector<float>{1.0F, -2.5F, 0x1p-24F}));
}

}  // namespace
}  // namespace simile::service

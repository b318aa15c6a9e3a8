#include "data/element_type.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace simile::data {
namespace {

// binary16 by its definition.
double HalfByDefinition(std::uint16_t half) {
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  const int exponent = half >> 10 & 0x1F;
  const int fraction = half & 0x3FF;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(FloatFromHalfTest, IsExactForEveryBitPattern) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = FloatFromHalf(half);
    ASSERT_EQ(std::signbit(value), bits >= 0x8000) << bits;
    if ((bits & 0x7C00) != 0x7C00) {
      ASSERT_EQ(static_cast<double>(value), HalfByDefinition(half)) << bits;
    } else {
      ASSERT_EQ(std::isnan(value), (bits & 0x3FF) != 0) << bits;
      ASSERT_EQ(std::isinf(value), (bits & 0x3FF) == 0) << bits;
    }
  }
}

TEST(DecodeElementsTest, ReadsEveryTypeAtAnyAlignment) {
  const float single = -1.2345678e-20F;
  const double wide = 9.87654321e200;
  std::vector<char> bytes(1 + sizeof wide);
  const auto decode = [&bytes](ElementType type, const void* stored) {
    std::memcpy(bytes.data() + 1, stored, ElementBytes(type));
    double value = 0;
    DecodeElements(type, {bytes.data() + 1, ElementBytes(type)}, {&value, 1});
    return value;
  };
  EXPECT_EQ(decode(ElementType::kFloat32, &single), static_cast<double>(single));
  EXPECT_EQ(decode(ElementType::kFloat64, &wide), wide);
  const std::uint16_t half = 0x3C01;
  EXPECT_EQ(decode(ElementType::kFloat16, &half), 1 + 0x1p-10);
  const std::uint16_t brain = 0xC049;
  EXPECT_EQ(decode(ElementType::kBfloat16, &brain),
            static_cast<double>(std::bit_cast<float>(0xC0490000U)));
}

}  // namespace
}  // namespace simile::data

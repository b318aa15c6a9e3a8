#include "base/fp16.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace simile::base {
namespace {

// binary16 by its definition (IEEE 754-2019, 3.4).
double ByDefinition(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 0x1F;
  const int fraction = bits & 0x3FF;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(FloatFromFp16Test, IsExactForEveryBitPattern) {
  for (std::uint32_t number = 0; number <= 0xFFFF; ++number) {
    const auto bits = static_cast<std::uint16_t>(number);
    const float value = FloatFromFp16(bits);
    ASSERT_EQ(std::signbit(value), number >= 0x8000) << number;
    if ((number & 0x7C00) != 0x7C00) {
      ASSERT_EQ(static_cast<double>(value), ByDefinition(bits)) << number;
    } else {
      ASSERT_EQ(std::isnan(value), (number & 0x3FF) != 0) << number;
      ASSERT_EQ(std::isinf(value), (number & 0x3FF) == 0) << number;
    }
  }
}

}  // namespace
}  // namespace simile::base

#pragma once

#include <bit>
#include <cstdint>

namespace simile::base {

// IEEE binary16 to binary32, exact for every bit pattern, subnormals included; NaN stays NaN.
// The formats differ by 112 in the exponent's bias: shifted into place, the bits read as the number
// times 2^-112, and one exact product corrects that. Without branches, so that compilers vectorise
// a loop of it.
inline float FloatFromFp16(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7FFFU) << 13;
  const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const bool special = (bits & 0x7C00U) == 0x7C00U;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  return std::bit_cast<float>(sign | (special ? magnitude | 0x7F800000U : finite));
}

}  // namespace simile::base

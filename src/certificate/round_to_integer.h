#pragma once

#include <bit>
#include <cstdint>

namespace simile::certificate {

// The nearest integer, ties to even, of a magnitude below 2^22. Adding 1.5 * 2^23 leaves a float no
// room for a fraction: the lowest bits of the sum are that integer.
inline std::int32_t RoundToInteger(float value) {
  constexpr float kRounder = 0x1.8p23F;
  return std::bit_cast<std::int32_t>(value + kRounder) - std::bit_cast<std::int32_t>(kRounder);
}

}  // namespace simile::certificate

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "certificate/quantizer.h"

namespace simile::certificate {

// The nearest integer, ties to even, of a magnitude below 2^22. A float near 1.5 * 2^23 has no
// fraction bits, so adding that rounds, and the low bits of the sum are the integer.
inline std::int32_t RoundToInteger(float value) {
  constexpr float kRounder = 0x1.8p23F;
  return std::bit_cast<std::int32_t>(value + kRounder) - std::bit_cast<std::int32_t>(kRounder);
}

// Rounds and clamps kCount vectors side by side and measures the residuals.
//   store  store(i, code) keeps a code for the i-th number, and returns the code that it kept
template <std::size_t kCount, class Store>
void QuantizeEach(const float* values, std::size_t count, float scale, std::int32_t code_max,
                  Store store, QuantizedSquares* squares) {
  const float steps_per_unit = 1.0F / scale;
  const auto limit = static_cast<float>(code_max);
  std::array<double, kCount> residual{};
  std::array<double, kCount> decoded{};
  for (std::size_t row = 0; row < count; ++row) {
    const float* in = values + row * kCount;
    for (std::size_t i = 0; i < kCount; ++i) {
      const float steps = std::min(std::max(in[i] * steps_per_unit, -limit), limit);
      const std::int32_t code = store(row * kCount + i, RoundToInteger(steps));
      const double back = static_cast<double>(scale) * code;
      const double left = static_cast<double>(in[i]) - back;
      residual[i] += left * left;
      decoded[i] += back * back;
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) squares[i] = {residual[i], decoded[i]};
}

}  // namespace simile::certificate

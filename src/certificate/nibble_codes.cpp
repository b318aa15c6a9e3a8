#include "certificate/nibble_codes.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>

#include "certificate/rotation.h"
#include "certificate/round_to_integer.h"

namespace simile::certificate {
namespace {

// The positive half of Max's sixteen levels, in standard deviations.
constexpr std::array<double, NibbleCodes::kCount / 2> kLevels{0.1284, 0.3881, 0.6568, 0.9424,
                                                              1.2562, 1.6181, 2.0690, 2.7326};

}  // namespace

NibbleCodes::NibbleCodes(std::int32_t code_max) : code_max_(code_max) {
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    const double code = std::round(kLevels[i] / kLevels.back() * code_max);
    codes_[kCount / 2 + i] = static_cast<std::int8_t>(code);
    codes_[kCount / 2 - 1 - i] = static_cast<std::int8_t>(-code);
  }
  for (std::int32_t code = -code_max; code <= code_max; ++code) {
    const auto distance = [code](std::int8_t to) { return std::abs(code - to); };
    const auto best = std::ranges::min_element(codes_, {}, distance);
    nearest_[static_cast<std::size_t>(code + code_max)] =
        static_cast<std::uint8_t>(best - codes_.begin());
  }
}

float NibbleCodes::ScaleFor(double mean_square) const {
  return std::max(static_cast<float>(kLevels.back() * std::sqrt(mean_square) / code_max_), FLT_MIN);
}

void NibbleCodes::Quantize(const float* values, std::size_t count, float scale,
                           std::uint8_t* nibbles, QuantizedSquares* squares) const {
  const float steps_per_unit = 1.0F / scale;
  const auto limit = static_cast<float>(code_max_);
  std::array<double, kSideBySide> residual{};
  std::array<double, kSideBySide> decoded{};
  for (std::size_t row = 0; row < count; ++row) {
    const float* in = values + row * kSideBySide;
    std::uint8_t* out = nibbles + row * kSideBySide;
    for (std::size_t i = 0; i < kSideBySide; ++i) {
      const float steps = std::min(std::max(in[i] * steps_per_unit, -limit), limit);
      out[i] = Nearest(RoundToInteger(steps));
      const double back = static_cast<double>(scale) * codes_[out[i]];
      const double left = static_cast<double>(in[i]) - back;
      residual[i] += left * left;
      decoded[i] += back * back;
    }
  }
  for (std::size_t i = 0; i < kSideBySide; ++i) squares[i] = {residual[i], decoded[i]};
}

}  // namespace simile::certificate

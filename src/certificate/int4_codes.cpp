#include "certificate/int4_codes.h"

#include <algorithm>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <cstdlib>

#include "certificate/quantizing_loop.h"
#include "certificate/rotation.h"

namespace simile::certificate {
namespace {

// The positive levels of Max's sixteen, in standard deviations.
constexpr std::array<double, Int4Codes::kCount / 2> kLevels{0.1284, 0.3881, 0.6568, 0.9424,
                                                            1.2562, 1.6181, 2.0690, 2.7326};

}  // namespace

Int4Codes::Int4Codes(std::int32_t code_max) : code_max_(code_max) {
  assert(code_max <= kByteCodeMax);
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    const double code = std::round(kLevels[i] / kLevels.back() * code_max);
    codes_[kCount / 2 + i] = static_cast<std::int8_t>(code);
    codes_[kCount / 2 - 1 - i] = static_cast<std::int8_t>(-code);
  }
  for (std::int32_t code = -code_max; code <= code_max; ++code) {
    const auto distance = [code](std::int8_t to) { return std::abs(code - to); };
    const auto best = std::ranges::min_element(codes_, {}, distance);
    const std::int32_t place = code + code_max;
    nearest_[static_cast<std::size_t>(place)] = static_cast<std::uint8_t>(best - codes_.begin());
  }
}

float Int4Codes::ScaleFor(double mean_square) const {
  return std::max(static_cast<float>(kLevels.back() * std::sqrt(mean_square) / code_max_), FLT_MIN);
}

void Int4Codes::Quantize(const float* values, std::size_t count, float scale, std::uint8_t* int4,
                         QuantizedSquares* squares) const {
  const auto store = [&](std::size_t i, std::int32_t code) {
    int4[i] = Nearest(code);
    return std::int32_t{codes_[int4[i]]};
  };
  QuantizeEach<kSideBySide>(values, count, scale, code_max_, store, squares);
}

}  // namespace simile::certificate

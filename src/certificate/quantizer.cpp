#include "certificate/quantizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "certificate/rotation.h"

namespace simile::certificate {
namespace {

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

// The positive levels of Max's sixteen, in standard deviations.
constexpr std::array<double, Int4Codes::kCount / 2> kLevels{0.1284, 0.3881, 0.6568, 0.9424,
                                                            1.2562, 1.6181, 2.0690, 2.7326};

}  // namespace

float LargestMagnitude(std::span<const float> values) {
  // One maximum for each of sixteen columns, so that compilers vectorise the loop.
  std::array<float, kSideBySide> largest{};
  for (std::size_t i = 0; i < values.size(); i += kSideBySide) {
    for (std::size_t j = 0; j < kSideBySide; ++j) {
      largest[j] = std::max(largest[j], std::fabs(values[i + j]));
    }
  }
  return *std::ranges::max_element(largest);
}

float ScaleFor(float largest, std::int32_t code_max) {
  return std::max(largest / static_cast<float>(code_max), FLT_MIN);
}

template <std::size_t kCount>
void Quantize(const float* values, std::size_t count, float scale, std::int32_t code_max,
              std::int8_t* codes, QuantizedSquares* squares) {
  const auto store = [codes](std::size_t i, std::int32_t code) {
    codes[i] = static_cast<std::int8_t>(code);
    return code;
  };
  QuantizeEach<kCount>(values, count, scale, code_max, store, squares);
}

template <std::size_t kCount>
void SquaredLengths(const float* values, std::size_t count, double* squares) {
  std::array<double, kCount> sums{};
  for (std::size_t row = 0; row < count; ++row) {
    for (std::size_t i = 0; i < kCount; ++i) {
      const double value = values[row * kCount + i];
      sums[i] += value * value;
    }
  }
  std::copy(sums.begin(), sums.end(), squares);
}

template void Quantize<1>(const float*, std::size_t, float, std::int32_t, std::int8_t*,
                          QuantizedSquares*);
template void Quantize<kSideBySide>(const float*, std::size_t, float, std::int32_t, std::int8_t*,
                                    QuantizedSquares*);
template void SquaredLengths<1>(const float*, std::size_t, double*);
template void SquaredLengths<kSideBySide>(const float*, std::size_t, double*);

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

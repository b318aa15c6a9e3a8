#include "certificate/quantizer.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>

#include "certificate/quantizing_loop.h"
#include "certificate/rotation.h"

namespace simile::certificate {

float LargestMagnitude(std::span<const float> values) {
  // One for each of sixteen columns, which compilers form together.
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

}  // namespace simile::certificate

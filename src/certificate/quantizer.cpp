#include "certificate/quantizer.h"

#include <algorithm>
#include <array>
#include <cfloat>

#include "certificate/rotation.h"
#include "certificate/round_to_integer.h"

namespace simile::certificate {
float ScaleFor(float largest, std::int32_t code_max) {
  return std::max(largest / static_cast<float>(code_max), FLT_MIN);
}

template <std::size_t kCount>
void Quantize(const float* values, std::size_t count, float scale, std::int32_t code_max,
              std::int8_t* codes, QuantizedSquares* squares) {
  const float steps_per_unit = 1.0F / scale;
  const auto limit = static_cast<float>(code_max);
  std::array<double, kCount> residual{};
  std::array<double, kCount> decoded{};
  for (std::size_t row = 0; row < count; ++row) {
    const float* in = values + row * kCount;
    std::int8_t* out = codes + row * kCount;
    for (std::size_t i = 0; i < kCount; ++i) {
      const float steps = std::min(std::max(in[i] * steps_per_unit, -limit), limit);
      const std::int32_t code = RoundToInteger(steps);
      const double back = static_cast<double>(scale) * code;
      const double left = static_cast<double>(in[i]) - back;
      residual[i] += left * left;
      decoded[i] += back * back;
      out[i] = static_cast<std::int8_t>(code);
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) squares[i] = {residual[i], decoded[i]};
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

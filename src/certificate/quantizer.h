#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simile::certificate {

// Codes lie in -code_max .. code_max; 127 fills a byte.
inline constexpr std::int32_t kByteCodeMax = 127;

// What quantizing a rotated vector y to y' = scale * codes left, as squares of lengths, in double.
struct QuantizedSquares {
  double residual = 0;  // |y - y'|^2
  double decoded = 0;   // |y'|^2
};

// The largest magnitude of a rotated vector. REQUIRES: whole kSideBySide numbers.
float LargestMagnitude(std::span<const float> values);

// The scale at which the largest magnitude just fits: largest / code_max, never zero.
float ScaleFor(float largest, std::int32_t code_max);

// Rounds scaled numbers to codes, ties to even, and clamps. Any rounding rule would be correct,
// because the residual is measured on the codes that result.
//   values  [count, kCount]  rotated vectors side by side
//   scale   what the codes are multiples of, one for all
//   codes   [count, kCount]  written
//   squares [kCount]         written; relative error below (count + 2) * 2^-53, since products of a
//                            float scale and a code are exact in double
template <std::size_t kCount>
void Quantize(const float* values, std::size_t count, float scale, std::int32_t code_max,
              std::int8_t* codes, QuantizedSquares* squares);

// Squares of the lengths of vectors side by side, in double; relative error below count * 2^-53.
template <std::size_t kCount>
void SquaredLengths(const float* values, std::size_t count, double* squares);

}  // namespace simile::certificate

#pragma once

#include <cstddef>
#include <cstdint>

namespace simile::certificate {

// Codes lie in -code_max .. code_max. A byte each: 127. Half of that where the instruction set adds
// pairs of products in sixteen bits (see backend/cpu/int8_kernel.h).
inline constexpr std::int32_t kByteCodeMax = 127;
inline constexpr std::int32_t kNarrowCodeMax = 63;

// What quantizing a rotated vector y to y' = scale * codes left, as squares of lengths, in double.
struct QuantizedSquares {
  double residual = 0;  // |y - y'|^2
  double decoded = 0;   // |y'|^2
};

// The scale at which the largest of the magnitudes just fits: largest / code_max, and never zero.
float ScaleFor(float largest, std::int32_t code_max);

// Rounds scaled numbers to codes, ties to even, and clamps. What matters is only that the residual
// is measured on the codes that come out: any rule would be correct, this one is nearly the best.
//   values  [count, kCount]  rotated vectors side by side
//   scale   what the codes are multiples of, one for all
//   codes   [count, kCount]  written
//   squares [kCount]         written. The products of float scale and code are exact in double, so
//   are the squares of
//                            what is left up to one rounding each: relative error below (count + 2)
//                            * 2^-53.
template <std::size_t kCount>
void Quantize(const float* values, std::size_t count, float scale, std::int32_t code_max,
              std::int8_t* codes, QuantizedSquares* squares);

// Squares of the lengths of vectors side by side, in double; relative error below count * 2^-53.
template <std::size_t kCount>
void SquaredLengths(const float* values, std::size_t count, double* squares);

}  // namespace simile::certificate

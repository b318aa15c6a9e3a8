#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace simile::certificate {

// Codes lie in -code_max .. code_max; 127 fills a byte.
inline constexpr std::int32_t kByteCodeMax = 127;

// What quantizing a rotated vector y to y' = scale * codes gives: squares of lengths, in double.
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
//   scale   the value of code 1, the same for all vectors
//   codes   [count, kCount]  written
//   squares [kCount]         written; relative error below (count + 2) * 2^-53, since products of a
//                            float scale and a code are exact in double
template <std::size_t kCount>
void Quantize(const float* values, std::size_t count, float scale, std::int32_t code_max,
              std::int8_t* codes, QuantizedSquares* squares);

// Squares of the lengths of vectors side by side, in double; relative error below count * 2^-53.
template <std::size_t kCount>
void SquaredLengths(const float* values, std::size_t count, double* squares);

// Half a byte a dimension: sixteen of the codes that a byte may hold, chosen for the least error on
// normally distributed numbers, as a rotation makes them (J. Max, "Quantizing for minimum
// distortion", IRE Trans. Inf. Theory 6(1), 1960). They are decoded to ordinary codes, so that
// bound and gate are the same. Immutable.
class Int4Codes {
 public:
  static constexpr std::size_t kCount = 16;

  // REQUIRES: code_max <= kByteCodeMax
  explicit Int4Codes(std::int32_t code_max);

  std::int8_t code(std::size_t int4) const { return codes_[int4]; }
  // The int4 whose code is nearest to this one, -code_max .. code_max.
  std::uint8_t Nearest(std::int32_t code) const {
    const std::int32_t place = code + code_max_;
    return nearest_[static_cast<std::size_t>(place)];
  }
  // The scale for numbers whose squares have this mean; never zero.
  float ScaleFor(double mean_square) const;

  // Quantizes as certificate::Quantize does, to the codes of int4.
  //   values   [count, kSideBySide]  finite
  //   scale    at least FLT_MIN, as ScaleFor's
  //   int4     [count, kSideBySide]  written
  //   squares  [kSideBySide]         written
  void Quantize(const float* values, std::size_t count, float scale, std::uint8_t* int4,
                QuantizedSquares* squares) const;

 private:
  std::int32_t code_max_;
  std::array<std::int8_t, kCount> codes_{};  // ascending
  std::array<std::uint8_t, 2 * kByteCodeMax + 1> nearest_{};
};

}  // namespace simile::certificate

#pragma once

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "certificate/quantizer.h"

namespace simile::certificate {

// Sums of up to 4096 + 64 terms and a handful of later operations, all in double, err by less than
// one part in 2^40 together. Multiplying by this factor rounds their results up.
inline constexpr double kRoundUp = 1.0 + 0x1p-39;

// Upper bounds on a vector x that was rotated to Rx and quantized to y'.
struct QuantizedNorms {
  double length = 0;    // |x|
  double residual = 0;  // |Rx - y'|
  double decoded = 0;   // |y'|

  // Raises the bounds so that they hold for both vectors.
  void Include(const QuantizedNorms& other);
};

// Forms the bounds, rounded up, from squares measured on the computed rotation of x.
//   length_squared  |y|^2 of the computed rotation y of x
QuantizedNorms BoundNorms(double length_squared, const QuantizedSquares& squares);

// The least float that is not below a number of at most FLT_MAX.
float FloatAbove(double value);

// Bounds the difference between the cheap score q'.y' (an exact integer product times both scales)
// and the canonical score of q and x. With e = Rx - y' and f = Rq - q',
//
//   q.x = Rq.Rx = q'.y' + f.y' + Rq.e,   so   |q.x - q'.y'| <= |f||y'| + |q||e|   (Cauchy-Schwarz)
//
// and the canonical score is within CanonicalScoreError of q.x (docs/design/certificate.md).
class ScoreBound {
 public:
  explicit ScoreBound(std::size_t dim);

  //   rows  bounds that hold for the row, or for all rows of a block
  double operator()(const QuantizedNorms& query, const QuantizedNorms& rows) const {
    const double of_rows = rows.residual + canonical_share_ * rows.length;
    return (query.residual * rows.decoded + query.length * of_rows) * kRoundUp + underflow_;
  }

 private:
  double canonical_share_;  // CanonicalScoreError is this share of the product of the lengths,
  double underflow_;        // plus this
};

// The gate in integers. A row may be dropped when its cheap score plus the bound is strictly below
// the threshold:
//
//   (sum - offset) / steps_per_unit + bound < threshold
//
// Returns a sum; every row with a lesser sum may be dropped. Rounding and clamping only lower the
// result, as long as |sum| < kGateMax.
//   steps_per_unit  1 / (scale of the query * scale of the rows)
//   offset          the part of the sum that the bias of row bytes adds
inline constexpr std::int32_t kGateMax = 1 << 30;
inline std::int32_t LeastSumToKeep(float threshold, double bound, double steps_per_unit,
                                   double offset) {
  // In real numbers the result is the ceiling of this plus 2. The product errs by less than one
  // while it is below 2^50, beyond which the clamp decides; the conversion truncates towards zero.
  const double least = (static_cast<double>(threshold) - bound) * steps_per_unit + offset - 2;
  const double limit = kGateMax;
  return static_cast<std::int32_t>(least < -limit ? -limit : (least > limit ? limit : least));
}

// A cheap score with its bound, as floats rounded outward: lower <= canonical score <= upper.
struct ScoreRange {
  float lower = 0;
  float upper = 0;
};
inline ScoreRange MakeRange(double cheap_score, double bound) {
  // A sum of two doubles errs by less than one part in 2^52 of the larger one.
  const double margin = bound + std::abs(cheap_score) * 0x1p-50;
  const auto low = static_cast<float>(cheap_score - margin);
  const auto high = static_cast<float>(cheap_score + margin);
  // Rounding to float errs by half a unit of the last place, and 2^-23 of a float is a whole one.
  return {low - (std::abs(low) * 0x1p-23F + FLT_TRUE_MIN),
          high + (std::abs(high) * 0x1p-23F + FLT_TRUE_MIN)};
}

}  // namespace simile::certificate

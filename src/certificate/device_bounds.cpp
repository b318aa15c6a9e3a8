#include "certificate/device_bounds.h"

#include <array>
#include <cmath>
#include <numeric>

#include "certificate/canonical_score.h"
#include "certificate/rotation.h"
#include "certificate/score_bound.h"
#include "simile/limits.h"

namespace simile::certificate {
namespace {

constexpr double kFp16Rounding = 0x1p-11;   // of a normal fp16, relative
constexpr double kFp16Underflow = 0x1p-25;  // of a subnormal one, absolute
constexpr double kTensorStep = 0x1p-23;     // lost by a truncated sum, relative
constexpr double kFloatRounding = 0x1p-24;  // relative

// The greatest |q - q'|, from the rounding of every element.
double QueryResidualMax(std::size_t padded_dim) {
  return kFp16Rounding * kUnitLengthMax +
         std::sqrt(static_cast<double>(padded_dim)) * kFp16Underflow;
}

// Higham's gamma: the greatest relative error of n steps that each lose a share of u.
double Gamma(double steps, double u) { return steps * u / (1 - steps * u); }

// Of the scale s, relative: a float next to the best one. The residual's part along x' is at most
// this share of the row.
constexpr double kScaleRounding = 0x1p-23;
// The kernels round a dozen floats below 3 while they form a cheap score, add bounds and a gate to
// it, and compare. The share also covers vectors whose coordinates are all below 2^-64, which have
// no codes.
constexpr double kGateRounding = 0x1p-19;

}  // namespace

double Length(std::span<const float> vector) {
  // Several sums side by side, because every query is measured: a single sum would wait for each
  // addition.
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> squares{};
  const auto square = [](float value) {
    return static_cast<double>(value) * static_cast<double>(value);
  };
  std::size_t i = 0;
  for (; i + kSums <= vector.size(); i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) squares[j] += square(vector[i + j]);
  }
  for (; i < vector.size(); ++i) squares[0] += square(vector[i]);
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

float CopyAndSquare(const float* __restrict__ from, std::size_t count, float* __restrict__ to) {
  constexpr std::size_t kSums = 16;
  std::array<float, kSums> sums{};
  for (std::size_t i = 0; i < count; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) {
      to[i + j] = from[i + j];
      sums[j] += from[i + j] * from[i + j];
    }
  }
  for (std::size_t half = kSums / 2; half != 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

bool UnitIsOne(float squares, std::size_t count) {
  // A square goes through one product and count / 16 + 3 sums, each within 2^-24; four more steps
  // cover terms of second order.
  const double error = kFloatRounding * static_cast<double>(count / 16 + 8);
  const auto sum = static_cast<double>(squares);
  return sum * (1 - error) > 0.25 && sum * (1 + error) <= kUnitLengthMax * kUnitLengthMax;
}

double ChooseUnit(double length) {
  if (length == 0 || (length > 0.5 && length <= kUnitLengthMax)) return 1;
  int exponent = 0;
  const double mantissa = std::frexp(length, &exponent);  // in [1/2, 1)
  return std::ldexp(1.0, mantissa == 0.5 ? 1 - exponent : -exponent);
}

float Fp16Bound(std::size_t padded_dim, double row_residual, double gate_max,
                CheapStorage storage) {
  const double query_residual = QueryResidualMax(padded_dim);
  const double row_length = kUnitLengthMax + row_residual;      // |x'|
  const double query_length = kUnitLengthMax + query_residual;  // |q'|
  const double steps = 2 * static_cast<double>(padded_dim) + 16;
  double bound = kUnitLengthMax * row_residual + query_residual * row_length;
  bound += Gamma(steps, kTensorStep) * (query_length * row_length + gate_max);
  const double score_max = query_length * row_length + bound;
  bound += storage == CheapStorage::kHalf ? kFp16Rounding * score_max + kFp16Underflow
                                          : 2 * kFloatRounding * (score_max + gate_max);
  bound += CanonicalScoreError(padded_dim, kUnitLengthMax, kUnitLengthMax) +
           CanonicalScoreError(padded_dim, 0, 0) * kUnitsPerScoreMax;
  return FloatAbove(bound * kRoundUp);
}

Int8Limits MakeInt8Limits(std::size_t padded_dim, float decoded, float residual) {
  const double row_length = kUnitLengthMax;
  // |R q - q'| is at most what the codes lose of the computed rotation, plus the rotation's own
  // error.
  const double per_length = kRotationError * (row_length + static_cast<double>(decoded)) +
                            kScaleRounding * row_length +
                            CanonicalScoreError(padded_dim, 1, row_length);
  const double rest = kGateRounding + CanonicalScoreError(padded_dim, 0, 0) * kUnitsPerScoreMax;
  return {decoded, residual, FloatAbove(per_length * kRoundUp), FloatAbove(rest * kRoundUp)};
}

}  // namespace simile::certificate

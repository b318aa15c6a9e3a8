#include "certificate/int8_bound.h"

#include "certificate/canonical_score.h"
#include "certificate/fp16_bound.h"
#include "certificate/rotation.h"
#include "certificate/score_bound.h"

namespace simile::certificate {
namespace {

// Of the scale s, relative: a float next to the best one. The residual's part along x' is at most
// this share of the row.
constexpr double kScaleRounding = 0x1p-23;
// What the kernels round while they form a cheap score, add bounds and a gate to it, and compare:
// a dozen roundings of floats below 3. It also covers vectors whose coordinates are all below
// 2^-64, which have no codes.
constexpr double kGateRounding = 0x1p-19;

}  // namespace

Int8Limits Int8LimitsOf(std::size_t padded_dim, float decoded, float residual) {
  const double row_length = kUnitLengthMax;
  // |R q - q'| is what the codes leave of the computed rotation plus that rotation's own error.
  const double per_length = kRotationError * (row_length + static_cast<double>(decoded)) +
                            kScaleRounding * row_length +
                            CanonicalScoreError(padded_dim, 1, row_length);
  const double rest = kGateRounding + CanonicalScoreError(padded_dim, 0, 0) * kUnitsPerScoreMax;
  return {decoded, residual, FloatAbove(per_length * kRoundUp), FloatAbove(rest * kRoundUp)};
}

}  // namespace simile::certificate

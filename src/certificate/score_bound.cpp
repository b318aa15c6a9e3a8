#include "certificate/score_bound.h"

#include <algorithm>

#include "certificate/canonical_score.h"
#include "certificate/rotation.h"

namespace simile::certificate {

void QuantizedNorms::Include(const QuantizedNorms& other) {
  length = std::max(length, other.length);
  residual = std::max(residual, other.residual);
  decoded = std::max(decoded, other.decoded);
}

QuantizedNorms BoundNorms(double length_squared, const QuantizedSquares& squares) {
  // |y| >= |x| (1 - r) with r = kRotationError, and 1 / (1 - r) < 1 + 2r.
  const double length = std::sqrt(length_squared) * (1.0 + 2 * kRotationError) * kRoundUp;
  return {.length = length,
          .residual = (std::sqrt(squares.residual) + kRotationError * length) * kRoundUp,
          .decoded = std::sqrt(squares.decoded) * kRoundUp};
}

float FloatAbove(double value) {
  const auto nearest = static_cast<float>(value);
  return static_cast<double>(nearest) >= value ? nearest : std::nextafter(nearest, FLT_MAX);
}

ScoreBound::ScoreBound(std::size_t dim)
    : canonical_share_(CanonicalScoreError(dim, 1, 1)),
      underflow_(CanonicalScoreError(dim, 0, 0)) {}

}  // namespace simile::certificate

#include "certificate/score_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "certificate/canonical_score.h"
#include "certificate/rotation.h"

namespace simile::certificate {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float RoundedDown(double value) {
  const auto nearest = static_cast<float>(value);
  return static_cast<double>(nearest) > value ? std::nextafter(nearest, -kInfinity) : nearest;
}

float RoundedUp(double value) {
  const auto nearest = static_cast<float>(value);
  return static_cast<double>(nearest) < value ? std::nextafter(nearest, kInfinity) : nearest;
}

}  // namespace

void QuantizedNorms::Include(const QuantizedNorms& other) {
  length = std::max(length, other.length);
  residual = std::max(residual, other.residual);
  decoded = std::max(decoded, other.decoded);
}

QuantizedNorms NormsOf(double length_squared, const QuantizedSquares& squares) {
  // |y| >= |x| (1 - r) with r = kRotationError, and 1 / (1 - r) < 1 + 2r.
  const double length = std::sqrt(length_squared) * (1.0 + 2 * kRotationError) * kRoundUp;
  return {.length = length,
          .residual = (std::sqrt(squares.residual) + kRotationError * length) * kRoundUp,
          .decoded = std::sqrt(squares.decoded) * kRoundUp};
}

ScoreBound::ScoreBound(std::size_t dim)
    : canonical_share_(CanonicalScoreError(dim, 1, 1)),
      underflow_(CanonicalScoreError(dim, 0, 0)) {}

ScoreRange RangeOf(double cheap_score, double bound) {
  // The sums of two doubles err by less than one part in 2^52 of the larger, which the float's
  // rounding does not see; the bound is widened by it.
  const double margin = bound + std::abs(cheap_score) * 0x1p-50;
  return {RoundedDown(cheap_score - margin), RoundedUp(cheap_score + margin)};
}

}  // namespace simile::certificate

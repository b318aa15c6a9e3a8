#include "certificate/cosine_threshold.h"

#include <cmath>
#include <limits>

#include "certificate/canonical_score.h"

namespace simile::certificate {

double CosineRounding(std::size_t dim) {
  // Twice 2^-24 for the two lengths, and a little for the rounding of this sum and of the lengths.
  constexpr double kLengthMax = 1.0 + 0x1p-24 + 0x1p-40;
  return CanonicalScoreError(dim, kLengthMax, kLengthMax) + (kLengthMax * kLengthMax - 1);
}

float CosineThreshold(float threshold, std::size_t dim) {
  if (threshold <= -1) return -std::numeric_limits<float>::infinity();
  const double rounding = CosineRounding(dim);
  if (threshold <= 1 - rounding || threshold > 1 + rounding) return threshold;
  // The greatest float that is not above the least score of equal rows.
  const auto least = static_cast<float>(1 - rounding);
  return least <= 1 - rounding ? least
                               : std::nextafter(least, -std::numeric_limits<float>::infinity());
}

}  // namespace simile::certificate

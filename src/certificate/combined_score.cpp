#include "certificate/combined_score.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "certificate/canonical_score.h"
#include "certificate/score_bound.h"
#include "certificate/vector_sum.h"
#include "simile/rank_key.h"

namespace simile::certificate {
namespace {

constexpr float kBelowAll = -std::numeric_limits<float>::infinity();

float GreatestProduct(std::span<const float> similarities, std::span<const float> weights) {
  float greatest = kBelowAll;
  for (std::size_t i = 0; i < similarities.size(); ++i) {
    greatest = std::max(greatest, similarities[i] * weights[i]);
  }
  return greatest;
}

}  // namespace

float Squash(float x) {
  const double wide = x;
  return static_cast<float>((wide / (1.0 + std::abs(wide)) + 1.0) / 2.0);
}

float BestScore(std::span<const float> similarities, std::span<const float> weights,
                std::size_t positive_count) {
  assert(!similarities.empty() && similarities.size() == weights.size());
  const float best =
      GreatestProduct(similarities.first(positive_count), weights.first(positive_count));
  const float worst =
      GreatestProduct(similarities.subspan(positive_count), weights.subspan(positive_count));
  return best > worst ? Squash(best) : -Squash(worst);
}

float BestScoreCeiling(std::span<const float> ceilings, std::span<const float> weights) {
  return Squash(GreatestProduct(ceilings, weights));
}

float BestScoreCeilingOfFloors(std::span<const float> floors, std::span<const float> weights) {
  return -Squash(GreatestProduct(floors, weights));
}

float SumScores(std::span<const float> similarities, std::span<const float> weights,
                std::size_t positive_count) {
  assert(!similarities.empty() && similarities.size() == weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < similarities.size(); ++i) {
    const double product = static_cast<double>(similarities[i]) * weights[i];
    sum = i < positive_count ? sum + product : sum - product;
  }
  return RankedScore(static_cast<float>(sum));
}

SumBound BoundSums(const float* examples, std::size_t padded_dim, std::size_t dim,
                   std::span<const float> weights, std::size_t positive_count, double longest_row,
                   float* direction) {
  VectorSum sum(dim);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double weight = i < positive_count ? weights[i] : -static_cast<double>(weights[i]);
    sum.Add(weight, examples + i * padded_dim);
  }
  std::fill_n(direction, padded_dim, 0.0F);
  if (sum.reach() == 0 || sum.CancelsOut()) return {};
  const double scale = sum.length();
  const double lengths = sum.reach();
  for (std::size_t column = 0; column < dim; ++column) {
    direction[column] = static_cast<float>(sum.values()[column] / scale);
  }

  // The bound adds three errors: of the canonical scores of the examples and of the direction; of
  // the direction's rounding to float (half a unit of each number, and underflow); of the sum's
  // rounding to float.
  // Double arithmetic adds less than one part in 2^40 of the lengths.
  const double of_examples = CanonicalScoreError(dim, lengths, longest_row) +
                             static_cast<double>(weights.size()) * CanonicalScoreError(dim, 0, 0) *
                                 std::ranges::max(weights);
  const double of_direction = scale * CanonicalScoreError(dim, 1.0 + 0x1p-20, longest_row);
  const double of_rounding =
      scale * longest_row * (0x1p-24 + std::sqrt(static_cast<double>(dim)) * 0x1p-149);
  const double of_sum = lengths * longest_row * (1.0 + 0x1p-10) * 0x1p-24 + 0x1p-149;
  const double of_doubles = lengths * longest_row * 0x1p-40;
  return {.scale = scale,
          .slack = (of_examples + of_direction + of_rounding + of_sum + of_doubles) * kRoundUp};
}

}  // namespace simile::certificate

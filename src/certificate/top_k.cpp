#include "certificate/top_k.h"

#include <algorithm>
#include <cmath>

namespace simile::certificate {
namespace {

constexpr double kChance = 1e-6;
// From this mean on the normal approximation is close enough, and the Poisson terms would
// underflow.
constexpr double kNormalMean = 500;
constexpr double kDeviations = 5;  // probability 3e-7; the rest up to 1e-6 allows for the skew

}  // namespace

std::size_t SpeculativeRank(std::size_t k, double fraction) {
  const double mean = static_cast<double>(k) * std::clamp(fraction, 0.0, 1.0);
  if (mean > kNormalMean) {
    const double rank = mean + kDeviations * std::sqrt(mean) + 1;
    return static_cast<std::size_t>(std::min(rank, static_cast<double>(k)));
  }
  double term = std::exp(-mean);
  double at_most = term;
  std::size_t rank = 0;
  while (1 - at_most > kChance && rank < k) {
    ++rank;
    term *= mean / static_cast<double>(rank);
    at_most += term;
  }
  return std::min(rank + 1, k);
}

}  // namespace simile::certificate

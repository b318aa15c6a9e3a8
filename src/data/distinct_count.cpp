#include "data/distinct_count.h"

#include <algorithm>
#include <cmath>

namespace simile::data {
namespace {

double ByChao(const DistinctSample& sample, double times) {
  const auto values = static_cast<double>(sample.values);
  const auto once = static_cast<double>(sample.once);
  const auto twice = static_cast<double>(sample.twice);
  const auto distinct = static_cast<double>(sample.distinct);
  if (once == 0) return distinct;
  const double unseen = twice > 0 ? once * once / (2 * twice) : once * (once - 1) / 2;
  if (unseen == 0) return distinct;
  // Each further value is new with this probability, as long as few of the unseen are found.
  const double rate = once / (values * unseen + once);
  return distinct - unseen * std::expm1(values * (times - 1) * std::log1p(-rate));
}

double ByHeaps(const DistinctSample& sample, double times) {
  const auto distinct = static_cast<double>(sample.distinct);
  const auto half = static_cast<double>(std::max<std::uint64_t>(sample.distinct_in_half, 1));
  return distinct * std::pow(times, std::clamp(std::log2(distinct / half), 0.0, 1.0));
}

}  // namespace

double DistinctCount(const DistinctSample& sample, double times) {
  if (sample.distinct == 0 || times <= 1) return static_cast<double>(sample.distinct);
  return std::sqrt(ByChao(sample, times) * ByHeaps(sample, times));
}

}  // namespace simile::data

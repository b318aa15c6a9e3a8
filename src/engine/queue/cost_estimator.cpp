#include "engine/queue/cost_estimator.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace simile::engine {
namespace {

// The model: what a pass costs whatever its size, each search, reading the rows' codes, and each
// search's products with them. Of the order of what engine_cost.py prints for AVX-512 on two cores.
constexpr double kPassMs = 0.01;
constexpr double kSearchMs = 0.005;
constexpr double kValueMs = 3e-8;
constexpr double kProductMs = 2e-9;
// A canonical score: mostly fetching a row of fp32.
constexpr double kScoreProductMs = 1.5e-7;

// The weight of a new measurement; the first one counts whole.
constexpr double kNewest = 0.25;

}  // namespace

void CostEstimator::Correction::Add(double ratio) {
  constexpr double kLeast = 1e-4;
  constexpr double kMost = 1e4;
  ratio = std::clamp(ratio, kLeast, kMost);
  factor_ = measured() ? factor_ * std::pow(ratio / factor_, kNewest) : ratio;
}

double CostEstimator::ModelMs(std::uint64_t values, std::uint32_t searches) {
  const auto read = static_cast<double>(values);
  return kPassMs + searches * kSearchMs + read * (kValueMs + searches * kProductMs);
}

std::size_t CostEstimator::SizeOf(std::uint32_t searches) {
  return std::min<std::size_t>(
      kSizes - 1, static_cast<std::size_t>(std::bit_width(std::max(1U, searches)) - 1));
}

const CostEstimator::Correction* CostEstimator::Nearest(const Corrections& corrections,
                                                        std::size_t size) {
  for (std::size_t distance = 0; distance < kSizes; ++distance) {
    if (size + distance < kSizes && corrections[size + distance].measured()) {
      return &corrections[size + distance];
    }
    if (distance <= size && corrections[size - distance].measured()) {
      return &corrections[size - distance];
    }
  }
  return nullptr;
}

const CostEstimator::Measured* CostEstimator::Find(const void* snapshot) const {
  const auto found = std::ranges::find(snapshots_, snapshot, &Measured::snapshot);
  return found == snapshots_.end() ? nullptr : &*found;
}

double CostEstimator::PassMs(const Shape& shape, std::uint32_t searches) const {
  const Measured* const measured = Find(shape.snapshot);
  const Correction* const correction =
      Nearest(measured == nullptr ? of_all_ : measured->of_size, SizeOf(searches));
  const double model = ModelMs(shape.values, searches);
  return correction == nullptr ? model : model * correction->factor();
}

std::uint32_t CostEstimator::SearchesWithin(const Shape& shape, double ms,
                                            std::uint32_t searches_max) const {
  const Measured* const measured = Find(shape.snapshot);
  const std::uint32_t largest = measured == nullptr ? 0 : measured->searches_max;
  searches_max = std::min(searches_max, std::max(kFirstSearchesMax, largest * kGrowth));
  // Costs of neighbouring sizes are corrected apart, so they may even fall from one size to the
  // next. Within a size they grow.
  std::uint32_t within = 1;
  for (std::uint32_t first = 1; first <= searches_max; first *= 2) {
    if (PassMs(shape, first) > ms) break;
    std::uint32_t most = std::min(searches_max, 2 * first - 1);
    std::uint32_t least = first;
    while (least < most) {
      const std::uint32_t middle = least + (most - least + 1) / 2;
      if (PassMs(shape, middle) <= ms) {
        least = middle;
      } else {
        most = middle - 1;
      }
    }
    within = least;
    if (least < std::min(searches_max, 2 * first - 1)) break;
  }
  return within;
}

double CostEstimator::ScoresMs(double products) const {
  return products * kScoreProductMs * scores_.factor();
}

void CostEstimator::AddPass(const Shape& shape, std::uint32_t searches, double ms) {
  const std::size_t size = SizeOf(searches);
  const double ratio = ms / ModelMs(shape.values, searches);
  of_all_[size].Add(ratio);
  auto found = std::ranges::find(snapshots_, shape.snapshot, &Measured::snapshot);
  if (found == snapshots_.end()) {
    if (snapshots_.size() == kSnapshotsMax) snapshots_.erase(snapshots_.begin());
    snapshots_.push_back({shape.snapshot, 0, {}});
    found = snapshots_.end() - 1;
  }
  std::rotate(found, found + 1, snapshots_.end());
  Measured& measured = snapshots_.back();
  measured.searches_max = std::max(measured.searches_max, searches);
  measured.of_size[size].Add(ratio);
}

void CostEstimator::AddScores(double products, double ms) {
  if (products > 0) scores_.Add(ms / (products * kScoreProductMs));
}

}  // namespace simile::engine

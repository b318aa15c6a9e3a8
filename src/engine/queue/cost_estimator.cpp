#include "engine/queue/cost_estimator.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "simile/limits.h"

namespace simile::engine {
namespace {

// The model adds four costs: one for each pass, one for each search, reading the rows' codes, and
// each search's products with the codes. The constants have the magnitude that engine_cost.py
// prints for AVX-512 on two cores.
constexpr double kPassMs = 0.01;
constexpr double kSearchMs = 0.005;
constexpr double kValueMs = 3e-8;
constexpr double kProductMs = 2e-9;
// Scoring and sorting a hit of a long list: 5,000 take 0.6 ms.
constexpr double kHitMs = 1.2e-4;
// Lists shorter than this are part of kSearchMs.
constexpr std::uint32_t kLongList = 256;
// A canonical score: mostly fetching a row of fp32.
constexpr double kScoreProductMs = 1.5e-7;

// A pass pays when its searches cost at most 1.05 times as much as in the cheapest pass.
constexpr double kHardlyMore = 1.05;

// The weight of a new measurement in the average; the first measurement has weight 1.
constexpr double kNewest = 0.25;

}  // namespace

void CostEstimator::Correction::Add(double ratio) {
  constexpr double kLeast = 1e-4;
  constexpr double kMost = 1e4;
  ratio = std::clamp(ratio, kLeast, kMost);
  factor_ = measured() ? factor_ * std::pow(ratio / factor_, kNewest) : ratio;
}

std::uint32_t CostEstimator::ToKClass(std::uint32_t k, std::size_t row_count) {
  static_assert(std::bit_width(kHitsMax / kLongList) < kClasses);
  return static_cast<std::uint32_t>(
      std::bit_width(std::min<std::size_t>({k, row_count, kHitsMax}) / kLongList));
}

CostEstimator::Model CostEstimator::MakeModel(const Shape& shape) {
  const auto read = static_cast<double>(shape.values);
  const double hits = shape.k_class == 0 ? 0 : kLongList << shape.k_class;  // the class's most
  return {.pass_ms = kPassMs + read * kValueMs,
          .search_ms = kSearchMs + hits * kHitMs + read * kProductMs};
}

std::size_t CostEstimator::ToSizeIndex(std::uint32_t searches) {
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

const CostEstimator::Measured* CostEstimator::Find(const Shape& shape) const {
  const auto found = std::ranges::find_if(
      shapes_, [&](const Measured& measured) { return measured.shape.IsLike(shape); });
  return found == shapes_.end() ? nullptr : &*found;
}

const CostEstimator::Corrections& CostEstimator::FindCorrections(const Shape& shape) const {
  const Measured* const measured = Find(shape);
  return measured == nullptr ? of_all_[shape.k_class] : measured->of_size;
}

double CostEstimator::PassMs(const Shape& shape, std::uint32_t searches) const {
  const Corrections& corrections = FindCorrections(shape);
  const std::size_t own_size = ToSizeIndex(searches);
  const Correction* const nearest = Nearest(corrections, own_size);
  const Model model = MakeModel(shape);
  double ms = model.Ms(searches) * (nearest == nullptr ? 1 : nearest->factor());
  for (std::size_t size = own_size + 1; size < kSizes; ++size) {
    const Correction& larger = corrections[size];
    if (larger.measured()) ms = std::min(ms, model.Ms(1U << size) * larger.factor());
  }
  return ms;
}

std::uint32_t CostEstimator::SearchesWithin(const Shape& shape, double ms,
                                            std::uint32_t searches_max) const {
  const Measured* const measured = Find(shape);
  const std::uint32_t largest = measured == nullptr ? 0 : measured->searches_max;
  searches_max = std::min(searches_max, std::max(kFirstSearchesMax, largest * kGrowth));
  const Corrections& corrections = FindCorrections(shape);
  const Model model = MakeModel(shape);
  // Each size has its own correction, so a larger size may have the smaller estimate. A smaller
  // pass takes no longer than a larger one, so the largest size that fits decides. Within a size
  // costs grow.
  for (std::size_t size = ToSizeIndex(searches_max) + 1; size-- > 0;) {
    const Correction* const nearest = Nearest(corrections, size);
    const double model_ms = nearest == nullptr ? ms : ms / nearest->factor();
    const std::uint32_t first = 1U << size;
    if (model.Ms(first) > model_ms) continue;
    const double most = (model_ms - model.pass_ms) / model.search_ms;
    const std::uint32_t last =
        std::min(searches_max, size + 1 < kSizes ? 2 * first - 1 : searches_max);
    return most < last ? std::max(first, static_cast<std::uint32_t>(most)) : last;
  }
  return 1;
}

std::uint32_t CostEstimator::SearchesThatPay(const Shape& shape, std::uint32_t searches_max) const {
  const auto ms_of_each = [&](std::uint32_t searches) {
    return PassMs(shape, searches) / searches;
  };
  double least = ms_of_each(searches_max);
  for (std::uint32_t searches = 1; searches < searches_max; searches *= 2) {
    least = std::min(least, ms_of_each(searches));
  }
  for (std::uint32_t searches = 1; searches < searches_max; searches *= 2) {
    if (ms_of_each(searches) <= least * kHardlyMore) return searches;
  }
  return searches_max;
}

double CostEstimator::ScoresMs(double products) const {
  return products * kScoreProductMs * scores_.factor();
}

std::vector<CostEstimator::PassTime> CostEstimator::ListPassTimes(const Shape& shape) const {
  std::vector<PassTime> times;
  const Measured* const measured = Find(shape);
  if (measured == nullptr) return times;
  for (std::size_t size = 0; size < kSizes; ++size) {
    const std::uint32_t searches = 1U << size;
    if (measured->of_size[size].measured()) times.push_back({searches, PassMs(shape, searches)});
  }
  return times;
}

void CostEstimator::Forget(const void* snapshot) {
  std::erase_if(shapes_, [snapshot](const Measured& measured) {
    return measured.shape.snapshot == snapshot;
  });
}

CostEstimator::Measured& CostEstimator::MeasuredNow(const Shape& shape) {
  auto found = std::ranges::find_if(
      shapes_, [&](const Measured& measured) { return measured.shape.IsLike(shape); });
  if (found == shapes_.end()) {
    if (shapes_.size() == kShapesMax) shapes_.erase(shapes_.begin());
    shapes_.push_back({shape, 0, {}});
    found = shapes_.end() - 1;
  }
  std::rotate(found, found + 1, shapes_.end());
  return shapes_.back();
}

void CostEstimator::AddPass(const Shape& shape, std::uint32_t searches, double ms) {
  const std::size_t size = ToSizeIndex(searches);
  const double ratio = ms / MakeModel(shape).Ms(searches);
  of_all_[shape.k_class][size].Add(ratio);
  AddPassSize(shape, searches);
  shapes_.back().of_size[size].Add(ratio);
}

void CostEstimator::AddPassSize(const Shape& shape, std::uint32_t searches) {
  Measured& measured = MeasuredNow(shape);
  measured.searches_max = std::max(measured.searches_max, searches);
}

void CostEstimator::AddScores(double products, double ms) {
  if (products > 0) scores_.Add(ms / (products * kScoreProductMs));
}

}  // namespace simile::engine

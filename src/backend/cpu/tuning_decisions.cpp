#include "backend/cpu/tuning_decisions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/int8_tuning.h"

namespace simile::backend::cpu {
namespace {

constexpr std::size_t kPairsMin = 5;
constexpr double kDisagreementMax = 1.25;

// The number that a quarter of them do not exceed.
double LowerQuartile(std::vector<double> numbers) {
  const auto quarter = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 4);
  std::ranges::nth_element(numbers, quarter);
  return *quarter;
}

std::size_t Clamped(std::size_t number, std::optional<std::size_t> TuningFindings::*which) {
  const auto values = TuningValues();
  const auto value = std::ranges::find(values, which, &TuningValue::found);
  return std::clamp(number, value->min, value->max);
}

}  // namespace

std::optional<double> MiddleRatio(std::span<const TimePair> pairs) {
  std::vector<double> ratios, firsts, seconds;
  for (const TimePair& pair : pairs) {
    // When the clock did not tick there is no measurement.
    if (pair.first_s <= 0 || pair.second_s <= 0) continue;
    ratios.push_back(pair.first_s / pair.second_s);
    firsts.push_back(pair.first_s);
    seconds.push_back(pair.second_s);
  }
  if (ratios.size() < kPairsMin) return std::nullopt;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::ranges::nth_element(ratios, middle);
  const double undisturbed = LowerQuartile(firsts) / LowerQuartile(seconds);
  const double disagreement = std::max(*middle / undisturbed, undisturbed / *middle);
  return disagreement < kDisagreementMax ? std::optional(*middle) : std::nullopt;
}

bool IsDenied(std::span<const RatioAt> ratios, double beyond_from) {
  constexpr double kClearly = 0.9;
  if (ratios.size() < 2) return false;
  return ratios[ratios.size() - 2].ratio > beyond_from &&
         ratios.back().ratio < kClearly * beyond_from;
}

std::size_t BlockBytesFor(std::size_t second_level_bytes) {
  return Clamped(second_level_bytes / 8, &TuningFindings::block_bytes);
}

std::size_t LargeBatchMinFor(std::span<const RatioAt> large_to_small) {
  std::size_t least = 2 * large_to_small.front().at;
  for (const RatioAt& measured : large_to_small) {
    if (measured.ratio > 1) break;
    least = measured.at;
  }
  return Clamped(least, &TuningFindings::large_batch_min);
}

std::size_t GatherShareFor(double for_one, double for_many) {
  constexpr double kAnyLarge = 1e6;  // before it becomes a whole number
  const double share = std::min(std::ceil(std::sqrt(for_one * for_many)), kAnyLarge);
  return Clamped(static_cast<std::size_t>(share), &TuningFindings::gather_share);
}

std::size_t ScanRowsMaxFor(std::span<const RatioAt> scan_to_pass) {
  std::size_t largest = 0;
  for (const RatioAt& measured : scan_to_pass) {
    if (measured.ratio > kScanCostMax) break;
    largest = measured.at;
  }
  return Clamped(largest, &TuningFindings::scan_rows_max);
}

}  // namespace simile::backend::cpu

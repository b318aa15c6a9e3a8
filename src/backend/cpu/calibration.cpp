#include "backend/cpu/calibration.h"

#include <unistd.h>

#include <array>
#include <new>
#include <span>

#include "backend/cpu/cache_size.h"
#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/machine_probe.h"

namespace simile::backend::cpu {
namespace {

constexpr std::array<std::size_t, 4> kBatches{16, 8, 6, kQueriesTogether + 1};
constexpr std::array<std::size_t, 5> kScanRows{512, 1'024, 2'048, 4'096, 8'192};
constexpr std::size_t kManyQueries = 32;

// Measures one size after another until a ratio lies beyond the crossing, and then one more. Empty
// when the times are too noisy to decide.
//   measure  the time pairs of one size
template <class Measure>
std::vector<RatioAt> MeasureUntilBeyond(std::span<const std::size_t> sizes, double beyond_from,
                                        Measure measure) {
  std::vector<RatioAt> ratios;
  bool beyond = false;
  for (const std::size_t size : sizes) {
    const std::optional<double> ratio = MiddleRatio(measure(size));
    if (!ratio) return {};
    ratios.push_back({size, *ratio});
    if (beyond) break;
    beyond = *ratio > beyond_from;
  }
  if (IsDenied(ratios, beyond_from)) return {};
  return ratios;
}

std::optional<std::size_t> FindLargeBatchMin(CalibrationProbe& probe) {
  const auto ratios = MeasureUntilBeyond(
      kBatches, 1, [&](std::size_t batch) { return probe.LargeAndSmall(batch); });
  if (ratios.empty()) return std::nullopt;
  return LargeBatchMinFor(ratios);
}

std::optional<std::size_t> FindGatherShare(CalibrationProbe& probe) {
  const std::optional<double> for_one = MiddleRatio(probe.GatherAndPass(1));
  const std::optional<double> for_many = MiddleRatio(probe.GatherAndPass(kManyQueries));
  if (!for_one || !for_many) return std::nullopt;
  return GatherShareFor(*for_one, *for_many);
}

std::optional<std::size_t> FindScanRowsMax(CalibrationProbe& probe) {
  const auto ratios = MeasureUntilBeyond(kScanRows, kScanCostMax,
                                         [&](std::size_t rows) { return probe.ScanAndPass(rows); });
  if (ratios.empty()) return std::nullopt;
  return ScanRowsMaxFor(ratios);
}

// Where sysfs lists no caches, as in some containers, sysconf may still know the size.
std::optional<std::size_t> SecondLevelOfThisMachine() {
  if (const auto bytes = SecondLevelBytes()) return bytes;
#ifdef _SC_LEVEL2_CACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return static_cast<std::size_t>(bytes);
#endif
  return std::nullopt;
}

}  // namespace

TuningFindings FindTuning(CalibrationProbe& probe, bool kernels_differ,
                          std::optional<std::size_t> second_level_bytes) {
  TuningFindings findings;
  if (second_level_bytes) findings.block_bytes = BlockBytesFor(*second_level_bytes);
  if (kernels_differ) findings.large_batch_min = FindLargeBatchMin(probe);
  findings.gather_share = FindGatherShare(probe);
  findings.scan_rows_max = FindScanRowsMax(probe);
  return findings;
}

TuningFindings Calibrate(const Int8Options& options) {
  const std::optional<std::size_t> second_level_bytes = SecondLevelOfThisMachine();
  Int8Options tuned = options;
  if (second_level_bytes) tuned.tuning.block_bytes = BlockBytesFor(*second_level_bytes);
  try {
    MachineProbe probe(tuned);
    return FindTuning(probe, options.large != options.small, second_level_bytes);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace simile::backend::cpu

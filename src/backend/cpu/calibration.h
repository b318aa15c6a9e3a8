#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_tuning.h"

namespace simile::backend::cpu {

// The functions that turn times into numbers are pure.

// Times of two strategies run right after each other, so that other load on the machine slows both.
struct TimePair {
  double first_s = 0;
  double second_s = 0;
};

// The median of the ratios first / second. Nothing when there are fewer than five pairs, or when
// other load disturbed too many pairs. That is so when the median differs by a factor of 1.25 or
// more from the ratio of the lower quartiles, which are the least disturbed times.
std::optional<double> MiddleRatio(std::span<const TimePair> pairs);

// A ratio, and the batch size or row count at which it was measured.
struct RatioAt {
  std::size_t at = 0;
  double ratio = 0;
};

// Ratios are measured in order until one is beyond the crossing, plus one more, because on a busy
// machine a single ratio may be wrong by half. Returns whether the last ratio clearly contradicts
// the ratio before it.
//   ratios       in the order measured
//   beyond_from  the least ratio that lies beyond
bool IsDenied(std::span<const RatioAt> ratios, double beyond_from);

// The bytes of a block that a second-level cache of this size holds together with the queries, the
// sums and the block being prefetched: an eighth of the cache, 256 KiB of 2 MiB.
std::size_t BlockBytesFor(std::size_t second_level_bytes);

// The least batch size from which on the large kernel is never slower.
//   large_to_small  time ratios, descending by batch, at least one; ratios after the first one
//                   above 1 are ignored
// Returns twice the largest batch when the large kernel is slower even there.
std::size_t LargeBatchMinFor(std::span<const RatioAt> large_to_small);

// One number serves single queries and batches, whose ratios differ. It is the geometric mean of
// the two ratios, which minimises the greater of the two losses.
//   for_one, for_many  cost of a gathered row as a multiple of the cost of a row of the pass
std::size_t GatherShareFor(double for_one, double for_many);

// The largest size up to which the plain scan takes at most a tenth longer than the pass; the scan
// needs no index. Returns the tuning's least value when the scan is slower even at the first size.
//   scan_to_pass  time ratios, ascending by rows; ratios after the first too large one are ignored
inline constexpr double kScanCostMax = 1.1;
std::size_t ScanRowsMaxFor(std::span<const RatioAt> scan_to_pass);

// The version of the measurements below and of the decisions made from them. Findings on disk are
// used only with an equal version. Raise it with every change that would find other values.
inline constexpr unsigned kCalibrationVersion = 2;

// The measurements that calibration needs. Each returns time pairs, fewer or none when time runs
// out. Tests implement it without a clock.
class CalibrationProbe {
 public:
  virtual ~CalibrationProbe() = default;

  // A pass of `batch` queries with the kernel for large batches, and with the small one.
  virtual std::vector<TimePair> LargeAndSmall(std::size_t batch) = 0;
  // Per row: gathering and scanning a filtered row; a pass under the same filter.
  virtual std::vector<TimePair> GatherAndPass(std::size_t batch) = 0;
  // One query against this many rows: the plain scan, and the pass.
  virtual std::vector<TimePair> ScanAndPass(std::size_t row_count) = 0;
};

// Chooses measurements, and derives the tuning from them. Has no clock.
//   kernels_differ      whether there are two kernels to choose from
//   second_level_bytes  size of the second-level cache; nullopt when it is not known
TuningFindings FindTuning(CalibrationProbe& probe, bool kernels_differ,
                          std::optional<std::size_t> second_level_bytes);

// Measures on this machine with the kernels and threads of these options, on synthetic vectors.
// Never fails: with too little memory or time there are fewer findings.
// Cost: at most about 0.4 s and 64 MB.
TuningFindings Calibrate(const Int8Options& options);

}  // namespace simile::backend::cpu

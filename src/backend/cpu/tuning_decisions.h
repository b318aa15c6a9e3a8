#pragma once

#include <cstddef>
#include <optional>
#include <span>

// The arithmetic of calibration: from times to numbers. Pure.
namespace simile::backend::cpu {

// Two roads timed one right after the other, so that whatever else the machine does slows both.
struct TimePair {
  double first_s = 0;
  double second_s = 0;
};

// The middle one of the ratios first / second. Nothing when there are fewer than five, or when the
// undisturbed quarter of the times of each road tells another story (by a factor of 1.25 and more):
// then the machine was too busy with something else for the middle one to mean much.
std::optional<double> MiddleRatio(std::span<const TimePair> pairs);

// A ratio and the batch or the row count at which it was found.
struct RatioAt {
  std::size_t at = 0;
  double ratio = 0;
};

// Ratios are asked for one after the other until one lies beyond the crossing, and once more: on a
// busy machine a single ratio may be wrong by half. Whether the last one, beyond the crossing too,
// denies it by saying the opposite clearly.
//   ratios       in the order asked
//   beyond_from  the least ratio that lies beyond
bool IsDenied(std::span<const RatioAt> ratios, double beyond_from);

// The block that a second-level cache of so many bytes keeps beside the queries, the product and
// the block that is fetched meanwhile: an eighth of it, 256 KiB of 2 MiB.
std::size_t BlockBytesFor(std::size_t second_level_bytes);

// The least batch from which on the large kernel is never the slower.
//   large_to_small  time ratios, descending by batch; at least one; none beyond the first above 1
//                   counts
// Twice the largest batch when the large kernel is slower even there.
std::size_t LargeBatchMinFor(std::span<const RatioAt> large_to_small);

// One number has to do for single queries and for batches, whose ratios differ. The geometric mean
// keeps the loss of the one that it fits less as small as can be.
//   for_one, for_many  cost of a gathered row as a multiple of the cost of a row of the pass
std::size_t GatherShareFor(double for_one, double for_many);

// The largest size up to which the plain scan takes no more than a tenth longer: it needs neither
// the memory of an index nor the time to build one.
//   scan_to_pass  time ratios, ascending by rows; none beyond the first too large counts
// The least value there is when the scan is slower even at the first.
inline constexpr double kScanCostMax = 1.1;
std::size_t ScanRowsMaxFor(std::span<const RatioAt> scan_to_pass);

}  // namespace simile::backend::cpu

#include "cli/bench/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace simile::cli::bench {
namespace {

constexpr unsigned kStepBits = 8;  // 256 buckets for each power of two
constexpr std::uint64_t kSteps = 1U << kStepBits;
constexpr unsigned kValueBits = 41;
constexpr std::uint64_t kValueMax = (std::uint64_t{1} << kValueBits) - 1;
// Values below 256 have one bucket each; each further bit adds 256 buckets.
constexpr std::size_t kBuckets = (kValueBits - kStepBits + 1) * kSteps;

}  // namespace

LatencyHistogram::LatencyHistogram() : counts_(kBuckets) {}

std::size_t LatencyHistogram::FindBucket(std::uint64_t value) {
  if (value < kSteps) return value;
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - kStepBits - 1;
  return (shift + 1) * kSteps + (value >> shift) - kSteps;
}

std::uint64_t LatencyHistogram::BucketEnd(std::size_t bucket) {
  if (bucket < kSteps) return bucket;
  const std::size_t shift = bucket / kSteps - 1;
  return ((kSteps + bucket % kSteps + 1) << shift) - 1;
}

void LatencyHistogram::Record(Nanoseconds latency, std::uint64_t count) {
  const std::uint64_t value =
      std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(0, latency.count())), kValueMax);
  counts_[FindBucket(value)] += count;
  count_ += count;
  max_ = std::max(max_, static_cast<std::int64_t>(value));
  sum_ += static_cast<double>(value) * static_cast<double>(count);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  std::ranges::transform(counts_, other.counts_, counts_.begin(), std::plus<>());
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

LatencyHistogram LatencyHistogram::Corrected(Nanoseconds interval) const {
  LatencyHistogram corrected = *this;
  for (const auto& [end, count] : Buckets()) {
    const Nanoseconds latency = std::min(end, max());
    for (Nanoseconds missed = latency - interval; missed >= interval; missed -= interval) {
      corrected.Record(missed, count);
    }
  }
  return corrected;
}

Nanoseconds LatencyHistogram::Mean() const {
  if (count_ == 0) return Nanoseconds(0);
  return Nanoseconds(std::llround(sum_ / static_cast<double>(count_)));
}

Nanoseconds LatencyHistogram::Percentile(double share) const {
  if (count_ == 0) return Nanoseconds(0);
  // Slightly less, so that rounding in 0.999 * 1,000 does not ask for the 1,000th value instead of
  // the 999th.
  const double wanted = std::ceil(share * static_cast<double>(count_) * (1 - 1e-12));
  const auto rank = std::clamp(static_cast<std::uint64_t>(wanted), std::uint64_t{1}, count_);
  std::uint64_t passed = 0;
  std::size_t bucket = 0;
  while ((passed += counts_[bucket]) < rank) ++bucket;
  return Nanoseconds(std::min(static_cast<std::int64_t>(BucketEnd(bucket)), max_));
}

std::vector<std::pair<Nanoseconds, std::uint64_t>> LatencyHistogram::Buckets() const {
  std::vector<std::pair<Nanoseconds, std::uint64_t>> buckets;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    if (counts_[bucket] == 0) continue;
    buckets.emplace_back(static_cast<std::int64_t>(BucketEnd(bucket)), counts_[bucket]);
  }
  return buckets;
}

}  // namespace simile::cli::bench

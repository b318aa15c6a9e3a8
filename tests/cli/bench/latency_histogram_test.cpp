#include "cli/bench/latency_histogram.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "cli/bench/random_draw.h"

namespace simile::cli::bench {
namespace {

using std::chrono::milliseconds;

constexpr double kShares[] = {0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};

// The smallest value that a share of the values does not exceed.
std::int64_t ExactPercentile(std::vector<std::int64_t> values, double share) {
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size()) * (1 - 1e-12));
  return values[static_cast<std::size_t>(rank) - 1];
}

TEST(LatencyHistogramTest, IsWithinABucketOfExactPercentiles) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    RandomDraw random(seed);
    LatencyHistogram histogram;
    std::vector<std::int64_t> values;
    for (int i = 0; i < 10'000; ++i) {
      // From 20 ns to some seconds, as latencies are spread.
      values.push_back(std::llround(std::exp(10 + 3 * random.Normal())));
      histogram.Record(Nanoseconds(values.back()));
    }
    for (const double share : kShares) {
      const std::int64_t exact = ExactPercentile(values, share);
      const std::int64_t told = histogram.Percentile(share).count();
      EXPECT_GE(told, exact) << share;
      EXPECT_LE(static_cast<double>(told), static_cast<double>(exact) * (1 + 1.0 / 256)) << share;
    }
    EXPECT_EQ(histogram.max().count(), std::ranges::max(values));
    EXPECT_EQ(histogram.count(), values.size());
  }
}

TEST(LatencyHistogramTest, IsExactBelow256) {
  LatencyHistogram histogram;
  for (int i = 0; i < 256; ++i) histogram.Record(Nanoseconds(i));
  EXPECT_EQ(histogram.Percentile(0.5).count(), 127);
  EXPECT_EQ(histogram.Buckets().size(), 256U);
  EXPECT_EQ(histogram.Mean().count(), 128);  // 127.5, rounded
}

TEST(LatencyHistogramTest, CountsTheWholeRange) {
  LatencyHistogram histogram;
  histogram.Record(Nanoseconds(-5));
  histogram.Record(std::chrono::hours(100));
  EXPECT_EQ(histogram.Percentile(0.5).count(), 0);
  EXPECT_EQ(histogram.max().count(), (std::int64_t{1} << 41) - 1);
  EXPECT_EQ(histogram.Percentile(1), histogram.max());
}

TEST(LatencyHistogramTest, IsZeroWhenEmpty) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.Percentile(0.99).count(), 0);
  EXPECT_EQ(histogram.Mean().count(), 0);
  EXPECT_TRUE(histogram.Buckets().empty());
}

TEST(LatencyHistogramTest, MergesAsIfRecordedTogether) {
  RandomDraw random(7);
  LatencyHistogram one;
  LatencyHistogram other;
  LatencyHistogram both;
  for (int i = 0; i < 1'000; ++i) {
    const Nanoseconds latency(static_cast<std::int64_t>(random.Below(1U << 30)));
    (i % 3 == 0 ? one : other).Record(latency);
    both.Record(latency);
  }
  one.Merge(other);
  EXPECT_EQ(one.Buckets(), both.Buckets());
  EXPECT_EQ(one.Mean(), both.Mean());
  EXPECT_EQ(one.max(), both.max());
}

// A closed loop that calls every 10 ms meets a stall of 1 s with one call; callers who do not wait
// for each other meet it with a hundred.
TEST(LatencyHistogramTest, CorrectedAddsTheCallsThatAStallKeptBack) {
  LatencyHistogram histogram;
  histogram.Record(milliseconds(1), 900);
  histogram.Record(milliseconds(1'000));
  EXPECT_LT(histogram.Percentile(0.99), milliseconds(2));
  const LatencyHistogram corrected = histogram.Corrected(milliseconds(10));
  EXPECT_EQ(corrected.count(), 900U + 1 + 99);  // 990 ms, 980 ms, ... 10 ms
  const double p99_ms = static_cast<double>(corrected.Percentile(0.99).count()) / 1e6;
  EXPECT_NEAR(p99_ms, 900, 10 + 900.0 / 256);
  EXPECT_EQ(histogram.count(), 901U);
}

}  // namespace
}  // namespace simile::cli::bench

#include "engine/queue/drain_rate.h"

#include <gtest/gtest.h>

namespace simile::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(DrainRateTest, SaysAConstantBeforeTheFirstBatch) {
  EXPECT_EQ(DrainRate().TimeFor(1'024), DrainRate::kUnmeasured);
}

TEST(DrainRateTest, DividesBySearchesPerSecond) {
  DrainRate rate;
  rate.AddBatch(200, milliseconds(100));
  EXPECT_EQ(rate.TimeFor(1'000), milliseconds(500));
  EXPECT_EQ(rate.TimeFor(100), milliseconds(50));
}

TEST(DrainRateTest, StaysWithinItsBounds) {
  DrainRate rate;
  rate.AddBatch(100, milliseconds(100));
  EXPECT_EQ(rate.TimeFor(1), DrainRate::kShortest);
  EXPECT_EQ(rate.TimeFor(1'000'000), DrainRate::kLongest);
  DrainRate instant;
  instant.AddBatch(100, microseconds(0));
  EXPECT_EQ(instant.TimeFor(1'000'000), DrainRate::kShortest);
}

TEST(DrainRateTest, FollowsAChangeWithinAFewBatches) {
  DrainRate rate;
  for (int batch = 0; batch < 100; ++batch) rate.AddBatch(100, milliseconds(10));
  for (int batch = 0; batch < 6; ++batch) rate.AddBatch(100, milliseconds(100));
  EXPECT_GT(rate.TimeFor(1'000), milliseconds(950));
  EXPECT_LT(rate.TimeFor(1'000), milliseconds(1'000));
}

TEST(DrainRateTest, CountsALargeBatchMoreThanASmallOne) {
  DrainRate rate;
  rate.AddBatch(1, milliseconds(1));       // before the overload
  rate.AddBatch(1'000, milliseconds(50));  // the first full batch
  EXPECT_EQ(rate.TimeFor(1'000), milliseconds(50));
}

}  // namespace
}  // namespace simile::engine

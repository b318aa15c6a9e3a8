#include "cli/plan/host_speed.h"

#include <chrono>

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

// Moves on by the same step whenever it is asked, so that only a few runs are made.
class SteppingClock final : public Clock {
 public:
  TimePoint Now() const override { return now_ += std::chrono::milliseconds(50); }
  std::chrono::system_clock::time_point WallNow() const override { return {}; }

 private:
  mutable TimePoint now_{};
};

TEST(HostSpeedTest, MeasuresSizesFromTheCachesToTheMemory) {
  backend::cpu::Int8Options options = backend::cpu::OptionsFor("portable");
  options.threads = 2;
  const SteppingClock clock;
  const auto speed = MeasureHostSpeed(options, 64, clock);
  ASSERT_TRUE(speed.ok()) << speed.status();
  ASSERT_FALSE(speed->cached.empty());
  EXPECT_EQ(speed->cached.front().bytes, 32U << 10);
  EXPECT_EQ(speed->cached.back().bytes, 256U << 20);
  EXPECT_EQ(speed->cached.back().bytes_per_s, speed->bytes_per_s);
  for (std::size_t i = 1; i < speed->cached.size(); ++i) {
    EXPECT_LE(speed->cached[i].bytes_per_s, speed->cached[i - 1].bytes_per_s)
        << "less cannot be slower: floors stay floors";
  }
  EXPECT_GT(speed->products_per_s, 0);
}

}  // namespace
}  // namespace simile::cli

#include "cli/bench/load_pace.h"

#include <chrono>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace simile::cli::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Intended times of an open loop whose calls are answered at once.
std::vector<Nanoseconds> Arrivals(double rate, std::uint64_t seed, Nanoseconds end) {
  LoadPace pace({.in_flight = 1, .rate = rate}, seed);
  std::vector<Nanoseconds> times;
  while (*pace.NextDue(end) < end) {
    times.push_back(pace.Send(end));
    pace.Complete();
  }
  return times;
}

TEST(LoadPaceTest, ClosedLoopSendsUntilEnoughAreUnderWay) {
  LoadPace pace({.in_flight = 2, .rate = std::nullopt}, 1);
  EXPECT_EQ(pace.NextDue(milliseconds(5)), milliseconds(5));
  EXPECT_EQ(pace.Send(milliseconds(5)), milliseconds(5));
  EXPECT_EQ(pace.Send(milliseconds(6)), milliseconds(6));
  EXPECT_EQ(pace.NextDue(milliseconds(7)), std::nullopt);
  pace.Complete();
  EXPECT_EQ(pace.NextDue(milliseconds(8)), milliseconds(8));
}

// Of a Poisson process the gaps are exponential (standard deviation = mean), and counts of equal
// intervals have a variance equal to their mean.
TEST(LoadPaceTest, OpenLoopArrivesAsAPoissonProcess) {
  constexpr double kRate = 1'000;
  constexpr int kSeconds = 200;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    const std::vector<Nanoseconds> times = Arrivals(kRate, seed, seconds(kSeconds));
    const auto count = static_cast<double>(times.size());
    EXPECT_NEAR(count, kRate * kSeconds, 5 * std::sqrt(kRate * kSeconds));
    double square = 0;
    std::vector<double> of_interval(kSeconds * 10);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double gap =
          std::chrono::duration<double>(times[i] - (i == 0 ? Nanoseconds(0) : times[i - 1]))
              .count();
      square += (gap * kRate - 1) * (gap * kRate - 1);
      ++of_interval[static_cast<std::size_t>(times[i] / milliseconds(100))];
    }
    EXPECT_NEAR(square / count, 1, 0.05);
    double variance = 0;
    for (const double calls : of_interval) variance += (calls - 100) * (calls - 100);
    EXPECT_NEAR(variance / static_cast<double>(of_interval.size()) / 100, 1, 0.2);
  }
}

TEST(LoadPaceTest, LateCallsKeepTheirIntendedTimes) {
  const std::vector<Nanoseconds> times = Arrivals(100, 5, seconds(1));
  LoadPace pace({.in_flight = 1, .rate = 100}, 5);
  EXPECT_EQ(pace.Send(seconds(1)), times[0]);
  EXPECT_EQ(pace.NextDue(seconds(1)), std::nullopt);  // one is under way
  pace.Complete();
  EXPECT_EQ(pace.NextDue(seconds(1)), times[1]);
  EXPECT_EQ(pace.Send(seconds(2)), times[1]);
}

TEST(LoadPaceTest, SkipsWhatIsDueBeforeTheEnd) {
  const std::vector<Nanoseconds> times = Arrivals(100, 9, seconds(1));
  LoadPace pace({.in_flight = 1, .rate = 100}, 9);
  pace.Send(seconds(1));
  std::vector<Nanoseconds> skipped;
  while (const auto time = pace.SkipBefore(seconds(1))) skipped.push_back(*time);
  EXPECT_EQ(skipped, std::vector<Nanoseconds>(times.begin() + 1, times.end()));
  LoadPace closed({.in_flight = 1, .rate = std::nullopt}, 9);
  EXPECT_EQ(closed.SkipBefore(seconds(1)), std::nullopt);
}

}  // namespace
}  // namespace simile::cli::bench

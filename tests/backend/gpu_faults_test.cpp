#include "backend/gpu_faults.h"

#include <vector>

#include <gtest/gtest.h>

namespace simile::backend {
namespace {

using std::chrono::seconds;

// 2023-11-14 22:13:20 UTC
constexpr std::chrono::system_clock::time_point kNow{seconds(1'700'000'000)};

std::vector<GpuFault> FaultsAgo(const std::vector<int>& ago_s) {
  std::vector<GpuFault> faults;
  faults.reserve(ago_s.size());
  for (const int ago : ago_s) {
    faults.push_back({kNow - seconds(ago), "an error " + std::to_string(ago) + " s ago"});
  }
  return faults;
}

TEST(GpuFaultsTest, UsesTheGpuAfterFewFaults) {
  EXPECT_EQ(WhyNotTried({}, kNow), "");
  EXPECT_EQ(WhyNotTried(FaultsAgo({2, 1}), kNow), "");
}

TEST(GpuFaultsTest, RefusesTheGpuAfterThreeFaultsInTenMinutes) {
  EXPECT_EQ(WhyNotTried(FaultsAgo({599, 300, 20}), kNow),
            "the GPU was lost 3 times in the last 10 minutes, the last time to an error 20 s ago; "
            "a start from 22:13:21 UTC tries it again");
}

TEST(GpuFaultsTest, ForgetsFaultsAfterTenMinutes) {
  EXPECT_EQ(WhyNotTried(FaultsAgo({600, 300, 20}), kNow), "");
}

TEST(GpuFaultsTest, CountsFaultsInAnyOrder) {
  EXPECT_EQ(WhyNotTried(FaultsAgo({20, 500, 400, 300}), kNow),
            "the GPU was lost 4 times in the last 10 minutes, the last time to an error 20 s ago; "
            "a start from 22:16:40 UTC tries it again");
}

TEST(GpuFaultsTest, IgnoresFaultsInTheFuture) {
  EXPECT_EQ(WhyNotTried(FaultsAgo({-60, -30, 20}), kNow), "");
}

// The time in the reason is the first at which a start uses the GPU.
TEST(GpuFaultsTest, UsesTheGpuAgainFromTheTimeInTheReason) {
  const std::vector<GpuFault> faults = FaultsAgo({500, 400, 300, 20});
  const auto again = kNow - seconds(400) + kGpuFaultsWindow;
  EXPECT_NE(WhyNotTried(faults, again - seconds(1)), "");
  EXPECT_EQ(WhyNotTried(faults, again), "");
}

}  // namespace
}  // namespace simile::backend

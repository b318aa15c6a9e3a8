// How kernels run: launches and their limits, background copies, barriers over the grid.

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>

#include "emulated_cuda/device_array.h"
#include "emulated_cuda/sample_kernels.h"

namespace emulated_cuda {
namespace {

using simile::samples::GridRounds;

TEST(LaunchTest, RunsEveryThreadOnceWithAnyNumberOfWorkers) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Options options = WithSeed(seed);
    options.workers = static_cast<int>(1 + seed % 4);
    ResetDevice(options);
    std::vector<int> values(1000);
    std::iota(values.begin(), values.end(), 0);
    const DeviceArray<int> d_values(values);
    ASSERT_EQ(simile::samples::LaunchScale(d_values.data(), 1000, 3, 1, nullptr), cudaSuccess);
    const std::vector<int> got = d_values.Read();
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], 3 * i + 1);
  }
}

TEST(LaunchTest, RefusesWhatADeviceRefuses) {
  ResetDevice(WithSeed(0));
  const DeviceArray<unsigned> out(3);
  const DeviceArray<int> ints(1);
  EXPECT_EQ(simile::samples::LaunchRounds(ints.data(), 1, 1025, 1, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(simile::samples::LaunchRounds(ints.data(), 0, 32, 1, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  constexpr std::size_t kAllowed = std::size_t{100} * 1024;
  EXPECT_EQ(simile::samples::LaunchDynamic(out.data(), kAllowed, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(simile::samples::AllowDynamic(std::size_t{228} * 1024), cudaErrorInvalidValue);
  ASSERT_EQ(simile::samples::AllowDynamic(kAllowed), cudaSuccess);
  EXPECT_EQ(simile::samples::LaunchDynamic(out.data(), kAllowed + 1, nullptr),
            cudaErrorInvalidValue);
  ASSERT_EQ(simile::samples::LaunchDynamic(out.data(), kAllowed, nullptr), cudaSuccess);
  EXPECT_EQ(out.Read(), std::vector<unsigned>(3, kAllowed));
}

TEST(LaunchTest, ShufflesBlocksOnlyUnderASeed) {
  const auto order = [](std::uint64_t seed) {
    ResetDevice(WithSeed(seed));
    const DeviceArray<unsigned> counter(std::vector<unsigned>{0}), blocks(20);
    EXPECT_EQ(simile::samples::LaunchOrder(counter.data(), blocks.data(), 20, nullptr),
              cudaSuccess);
    return blocks.Read();
  };
  const std::vector<unsigned> in_order = order(0);
  EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end()));
  EXPECT_NE(order(1), in_order);
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(AsyncCopyTest, LandsAtItsWaitUnderEverySeed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ResetDevice(WithSeed(seed));
    std::vector<int> values(384);
    std::iota(values.begin(), values.end(), 1);
    const DeviceArray<int> in(values), out(384);
    ASSERT_EQ(simile::samples::LaunchReverse(in.data(), 300, out.data(), 3, nullptr), cudaSuccess);
    const std::vector<int> got = out.Read();
    for (int i = 0; i < 384; ++i) {
      const int source = i / 128 * 128 + 127 - i % 128;
      ASSERT_EQ(got[static_cast<std::size_t>(i)], source < 300 ? source + 1 : 0);
    }
  }
}

struct Meeting {
  cudaError_t error;
  std::vector<unsigned> out;
  std::string report;
};

Meeting Meet(std::uint64_t seed, int blocks, GridRounds rounds, bool together) {
  Options options = WithSeed(seed);
  options.multiprocessors = 8;
  ResetDevice(options);
  const auto count = static_cast<std::size_t>(blocks);
  const DeviceArray<unsigned> words(std::vector<unsigned>(count + 2, 0)), out(count);
  rounds.words = words.data();
  rounds.out = out.data();
  cudaError_t error = simile::samples::LaunchGridRounds(rounds, blocks, 96, together, nullptr);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  Meeting meeting{error, {}, TakeReport()};
  if (error == cudaSuccess) meeting.out = out.Read();
  return meeting;
}

TEST(CooperativeLaunchTest, BlocksMeetUnderEverySeed) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const int blocks = static_cast<int>(1 + seed % 8);
    const Meeting meeting = Meet(seed, blocks, {nullptr, nullptr, 5, -1, -1}, true);
    ASSERT_EQ(meeting.error, cudaSuccess) << meeting.report;
    const auto sum = static_cast<unsigned>(blocks * (blocks - 1) / 2 + 5 * blocks);
    EXPECT_EQ(meeting.out, std::vector<unsigned>(static_cast<std::size_t>(blocks), sum));
  }
}

TEST(CooperativeLaunchTest, RefusesMoreBlocksThanMultiprocessors) {
  const Meeting meeting = Meet(0, 9, {nullptr, nullptr, 1, -1, -1}, true);
  EXPECT_EQ(meeting.error, cudaErrorCooperativeLaunchTooLarge);
}

TEST(CooperativeLaunchTest, IsReportedWhenABlockNeverArrives) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Meeting meeting = Meet(seed, 6, {nullptr, nullptr, 3, 2, -1}, true);
    EXPECT_EQ(meeting.error, cudaErrorLaunchTimeout);
    EXPECT_THAT(meeting.report, testing::HasSubstr("waits for memory that no thread will write"));
    EXPECT_THAT(meeting.report, testing::HasSubstr("kernel simile::samples::Rounds, block ("));
  }
}

TEST(CooperativeLaunchTest, AFaultOfOneBlockReleasesTheOthers) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Meeting meeting = Meet(seed, 6, {nullptr, nullptr, 3, -1, 4}, true);
    EXPECT_EQ(meeting.error, cudaErrorLaunchFailure);
    EXPECT_THAT(meeting.report, testing::HasSubstr("block (4,0,0): deadlock: 95 threads"));
  }
}

// As on a device that cannot hold all blocks at once.
TEST(CooperativeLaunchTest, IsReportedWhenLaunchedAsAnOrdinaryKernel) {
  const Meeting meeting = Meet(1, 6, {nullptr, nullptr, 2, -1, -1}, false);
  EXPECT_EQ(meeting.error, cudaErrorLaunchTimeout);
}

TEST(DeviceTest, ReportsItsProperties) {
  Options options = WithSeed(0);
  options.memory_bytes = std::size_t{256} << 20;
  options.compute_capability = 86;
  options.multiprocessors = 10;
  options.l2_bytes = 123456;
  ResetDevice(options);
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "Emulated CUDA device");
  EXPECT_EQ(properties.totalGlobalMem, options.memory_bytes);
  EXPECT_EQ(properties.major * 10 + properties.minor, 86);
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, which, 0), cudaSuccess);
    return value;
  };
  EXPECT_EQ(attribute(cudaDevAttrL2CacheSize), 123456);
  EXPECT_EQ(attribute(cudaDevAttrMultiProcessorCount), 10);
  EXPECT_EQ(attribute(cudaDevAttrCooperativeLaunch), 1);
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), 227 * 1024);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 1), cudaErrorInvalidDevice);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

// Checks no limit, because the machine may be busy; prints the figures.
TEST(SpeedTest, BarriersAndShufflesAreCheap) {
  using Clock = std::chrono::steady_clock;
  constexpr int kBlocks = 8, kThreads = 256, kRounds = 50;
  for (const std::uint64_t seed : {0U, 1U}) {
    ResetDevice(WithSeed(seed));
    const DeviceArray<int> out(std::size_t{kBlocks} * kThreads);
    const auto run = [&](int rounds) {
      const auto start = Clock::now();
      EXPECT_EQ(simile::samples::LaunchRounds(out.data(), kBlocks, kThreads, rounds, nullptr),
                cudaSuccess);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    };
    run(1);
    const double empty = run(0), full = run(kRounds);
    std::printf(
        "seed %d: %d blocks of %d threads %.0f us; with %d barriers and shuffles %.0f us, "
        "%.1f us for one of each in a block\n",
        static_cast<int>(seed), kBlocks, kThreads, empty, kRounds, full,
        (full - empty) / (kBlocks * kRounds));
  }
}

}  // namespace
}  // namespace emulated_cuda

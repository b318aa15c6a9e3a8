// Every planted bug is found under every one of 20 seeds, by a fault or by a wrong result. A run
// covers five of the seeds (conformance/rotation.h).

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "conformance/rotation.h"
#include "emulated_cuda/broken_kernels.h"
#include "emulated_cuda/device_array.h"
#include "emulated_cuda/sanitizer.h"

namespace emulated_cuda {
namespace {

using simile::broken::Bug;
using simile::broken::kThreads;

constexpr std::uint64_t kSeeds = 20;

struct Outcome {
  cudaError_t error;
  std::string report;
  bool right;
};

Outcome Run(Bug bug, std::uint64_t seed) {
  ResetDevice(WithSeed(seed));
  std::vector<int> values(kThreads);
  std::iota(values.begin(), values.end(), 1);
  const DeviceArray<int> in(values), out(kThreads), scratch(kThreads);
  cudaError_t error = simile::broken::Launch(bug, in.data(), out.data(), scratch.data(), nullptr);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  std::string report = TakeReport();
  bool right = false;
  if (error == cudaSuccess) {
    std::vector<int> got = out.Read();
    std::reverse(got.begin(), got.end());
    right = got == values;
  }
  return {error, std::move(report), right};
}

std::vector<std::uint64_t> SeedsOfRun() {
  const auto rotation = simile::conformance::Rotation::FromEnvironment();
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    if (rotation.Covers(seed)) seeds.push_back(seed);
  }
  return seeds;
}

void ExpectFault(Bug bug, cudaError_t error, const std::string& text) {
  for (const std::uint64_t seed : SeedsOfRun()) {
    const Outcome outcome = Run(bug, seed);
    EXPECT_EQ(outcome.error, error) << "seed " << seed << ": " << outcome.report;
    EXPECT_NE(outcome.report.find(text), std::string::npos)
        << "seed " << seed << ": " << outcome.report;
  }
}

void ExpectWrong(Bug bug) {
  for (const std::uint64_t seed : SeedsOfRun()) {
    const Outcome outcome = Run(bug, seed);
    EXPECT_EQ(outcome.error, cudaSuccess) << outcome.report;
    EXPECT_FALSE(outcome.right) << "seed " << seed;
  }
}

// AddressSanitizer ends the process at the access; without it the device finds the broken red zone.
void ExpectFoundBeside(Bug bug, const std::string& text) {
  if (kAddressSanitizer) {
    EXPECT_DEATH(Run(bug, 0), "AddressSanitizer");
    return;
  }
  ExpectFault(bug, cudaErrorIllegalAddress, text);
}

TEST(PlantedBugTest, MissingBarrierGivesWrongDataUnderEverySeed) {
  ExpectWrong(Bug::kMissingBarrier);
  ExpectWrong(Bug::kMissingBarrierPlain);
}

TEST(PlantedBugTest, MissingBarrierBeforeReuseGivesWrongDataUnderEverySeed) {
  ExpectWrong(Bug::kMissingBarrierBeforeReuse);
}

TEST(PlantedBugTest, MissingCopyWaitGivesWrongDataUnderEverySeed) {
  ExpectWrong(Bug::kMissingCopyWait);
}

TEST(PlantedBugTest, WriteBesideGlobalMemoryIsReported) {
  ExpectFoundBeside(Bug::kWriteBehindGlobal,
                    "kernel simile::broken::WriteBesideGlobal: device memory written 0 bytes past "
                    "the end of an allocation of 512 bytes");
  ExpectFoundBeside(Bug::kWriteBeforeGlobal,
                    "device memory written 4 bytes before an allocation of 512 bytes");
}

TEST(PlantedBugTest, WriteBehindSharedMemoryIsReported) {
  ExpectFault(Bug::kIndexBehindShared, cudaErrorIllegalAddress, "shared array of 127: index 127");
  ExpectFault(Bug::kWriteBehindShared, cudaErrorIllegalAddress,
              "kernel simile::broken::WriteBehindShared, block (0,0,0): shared memory written 0 "
              "bytes past the end of an array");
  ExpectFault(Bug::kWriteBehindDynamic, cudaErrorIllegalAddress,
              "shared memory written 0 bytes past the end of the dynamic shared memory");
}

TEST(PlantedBugTest, ReadOfUnwrittenMemoryGivesWrongDataUnderEverySeed) {
  ExpectWrong(Bug::kUnwrittenShared);
  ExpectWrong(Bug::kUnwrittenPlain);
  ExpectWrong(Bug::kUnwrittenDynamic);
  ExpectWrong(Bug::kUnwrittenGlobal);
}

TEST(PlantedBugTest, DivergentBarrierIsReported) {
  ExpectFault(Bug::kReturnBeforeBarrier, cudaErrorLaunchFailure,
              "deadlock: 96 threads at the block barrier of line");
  ExpectFault(Bug::kTwoBarriers, cudaErrorLaunchFailure, "block barriers of lines");
}

TEST(PlantedBugTest, MissingSyncwarpGivesWrongDataUnderEverySeed) {
  ExpectWrong(Bug::kMissingSyncwarp);
}

TEST(PlantedBugTest, WrongLaneMaskIsReported) {
  ExpectFault(Bug::kWrongLaneMask, cudaErrorLaunchFailure, "of mask ffffffff");
  ExpectFault(Bug::kNotInOwnMask, cudaErrorLaunchFailure, "not in its own mask 0000ffff");
}

TEST(PlantedBugTest, MisalignedCopyIsReported) {
  ExpectFault(Bug::kMisalignedCopy, cudaErrorMisalignedAddress, "needs their alignment");
}

TEST(PlantedBugTest, TooMuchSharedMemoryIsReported) {
  ExpectFault(Bug::kTooMuchShared, cudaErrorLaunchOutOfResources, "more than a block has");
}

TEST(PlantedBugTest, OrderOfBlocksVariesWithTheSeedAndRepeatsForOne) {
  const auto last_writer = [](std::uint64_t seed) {
    ResetDevice(WithSeed(seed));
    const DeviceArray<int> in(std::vector<int>(kThreads, 0)), out(kThreads), scratch(kThreads);
    EXPECT_EQ(
        simile::broken::Launch(Bug::kLastWriter, in.data(), out.data(), scratch.data(), nullptr),
        cudaSuccess);
    return out.Read()[0];
  };
  std::set<int> writers;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    writers.insert(last_writer(seed));
    EXPECT_EQ(last_writer(seed), last_writer(seed));
  }
  EXPECT_GT(writers.size(), 5U);
}

}  // namespace
}  // namespace emulated_cuda

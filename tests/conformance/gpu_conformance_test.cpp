// The GPU engine, on the emulated device, answers every case with the oracle's rows and bits: each
// of its roads, on four cards, under twenty orders of blocks, threads, streams and sums.
//
// A failure prints the case's seed; SIMILE_CONFORMANCE_SEED=<seed> runs that case alone, on every
// card and under every order.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

#include "backend/cuda/emulated_gpu.h"
#include "conformance/conformance_case.h"
#include "conformance/conformance_check.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::conformance {
namespace {

using testing::ForcedRoad;

constexpr std::uint64_t kDeviceSeeds = 20;
constexpr std::uint64_t kCasesPerSeed = 20;
constexpr std::uint64_t kFirstSeed = 2'000'000;

struct Road {
  const char* name;
  ForcedRoad road;
  const char* engine;  // as answers that came this road begin to call it
};
constexpr Road kRoads[] = {{"as_served", ForcedRoad::kNone, "scan-"},
                           {"row_scan", ForcedRoad::kRowScan, "fp16-scan-"},
                           {"gemm", ForcedRoad::kGemm, "fp16-gemm-"},
                           {"gather", ForcedRoad::kGather, "gather-"},
                           {"canonical", ForcedRoad::kCanonical, "scan-"}};

void PrintTo(const Road& road, std::ostream* out) { *out << road.name; }

class GpuConformanceTest : public ::testing::TestWithParam<std::tuple<Road, std::uint64_t>> {};

// What came of the queries of many cases.
struct Tally {
  std::uint64_t queries = 0;
  std::uint64_t on_road = 0;  // answered by the road that is tested
  std::uint64_t rescans = 0;

  void Count(const SearchResult& result, std::string_view engine) {
    for (std::size_t query = 0; query < result.batch(); ++query) {
      const std::string_view name = result.Engine(query);
      if (name.empty()) continue;  // nothing passes
      ++queries;
      if (name.starts_with(engine)) ++on_road;
      rescans += result.Cost(query).rescans;
    }
  }
};

void CheckCases(const Road& road, std::uint64_t device_seed, std::uint64_t first_seed,
                std::uint64_t count) {
  Tally tally;
  testing::ResetEmulatedGpu(testing::CardOf(device_seed), device_seed);
  {
    const auto backend = testing::OpenEmulatedGpu(testing::EmulatedOptions(road.road));
    ASSERT_TRUE(backend.ok()) << backend.status().ToString();
    SearchResult result;  // one for all cases: whatever an answer leaves behind meets the next
    for (std::uint64_t i = 0; i < count; ++i) {
      ExpectConforms(**backend, first_seed + i, result);
      EXPECT_EQ(emulated_cuda::TakeReport(), "");
      tally.Count(result, road.engine);
      if (::testing::Test::HasFailure()) {
        std::printf("device seed %" PRIu64 ", replay with SIMILE_CONFORMANCE_SEED=%" PRIu64 "\n",
                    device_seed, first_seed + i);
        return;
      }
    }
  }
  EXPECT_EQ(emulated_cuda::LiveObjects(), 0U) << "something was not given back";
  std::printf("%s on %s, device seed %" PRIu64 ": %" PRIu64 " cases from seed %" PRIu64 ", %" PRIu64
              " of %" PRIu64 " queries on the road, %" PRIu64 " rescans\n",
              road.name, testing::CardOf(device_seed).name, device_seed, count, first_seed,
              tally.on_road, tally.queries, tally.rescans);
  if (count < kCasesPerSeed) return;
  EXPECT_GT(tally.on_road, 0U) << "the road was not taken at all";
}

TEST_P(GpuConformanceTest, AnswersWithTheOraclesRowsAndBits) {
  const auto& [road, device_seed] = GetParam();
  if (const char* seed = std::getenv("SIMILE_CONFORMANCE_SEED")) {
    return CheckCases(road, device_seed, std::strtoull(seed, nullptr, 10), 1);
  }
  CheckCases(road, device_seed, kFirstSeed + device_seed * kCasesPerSeed, kCasesPerSeed);
}

INSTANTIATE_TEST_SUITE_P(Roads, GpuConformanceTest,
                         ::testing::Combine(::testing::ValuesIn(kRoads),
                                            ::testing::Range<std::uint64_t>(0, kDeviceSeeds)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_device_seed_" +
                                  std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace simile::conformance

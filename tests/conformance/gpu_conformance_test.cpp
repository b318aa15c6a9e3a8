// The GPU engine, on the emulated device, answers every case with the oracle's rows and bits: each
// strategy forced, on four cards, under twenty orders of blocks, threads, streams and sums. A run
// covers five of these orders for each strategy (rotation.h).
//
// A failure prints the case's seed; SIMILE_CONFORMANCE_SEED=<seed> runs that case alone, on every
// card and under every order.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>

#include "backend/cuda/emulated_gpu.h"
#include "conformance/conformance_case.h"
#include "conformance/conformance_check.h"
#include "conformance/rotation.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::conformance {
namespace {

using tests::ForcedStrategy;

constexpr std::uint64_t kDeviceSeeds = 20;
constexpr std::uint64_t kCasesPerSeed = 20;
constexpr std::uint64_t kFirstSeed = 2'000'000;

struct Strategy {
  const char* name;
  ForcedStrategy forced;
  const char* engine;  // how the engine's name begins on answers of this strategy
};
constexpr Strategy kStrategies[] = {{"as_served", ForcedStrategy::kNone, "scan-"},
                                    {"int8_scan", ForcedStrategy::kInt8Scan, "int8-scan-"},
                                    {"row_scan", ForcedStrategy::kRowScan, "fp16-scan-"},
                                    {"gemm", ForcedStrategy::kGemm, "fp16-gemm-"},
                                    {"gather", ForcedStrategy::kGather, "gather-"},
                                    {"canonical", ForcedStrategy::kCanonical, "scan-"}};

void PrintTo(const Strategy& strategy, std::ostream* out) { *out << strategy.name; }

class GpuConformanceTest : public ::testing::TestWithParam<std::tuple<Strategy, std::uint64_t>> {};

void CheckCases(const Strategy& strategy, std::uint64_t device_seed, std::uint64_t first_seed,
                std::uint64_t count) {
  EngineTally tally;
  const tests::EmulatedCard& card = tests::CardOf(Rotation::VariantOf(device_seed));
  tests::ResetEmulatedGpu(card, device_seed);
  {
    const auto backend = tests::OpenEmulatedGpu(tests::EmulatedOptions(strategy.forced));
    ASSERT_TRUE(backend.ok()) << backend.status().ToString();
    SearchResult result;  // one for all cases: see ExpectConforms
    for (std::uint64_t i = 0; i < count; ++i) {
      ExpectConforms(**backend, first_seed + i, result, tally);
      EXPECT_EQ(emulated_cuda::TakeReport(), "");
      if (::testing::Test::HasFailure()) {
        std::printf("device seed %" PRIu64 ", replay with SIMILE_CONFORMANCE_SEED=%" PRIu64 "\n",
                    device_seed, first_seed + i);
        return;
      }
    }
  }
  EXPECT_EQ(emulated_cuda::LiveObjects(), 0U) << "something was not released";
  // A card without the int8 scan uses the next one.
  const bool is_int8 = strategy.forced == ForcedStrategy::kInt8Scan && card.capability >= 80;
  const std::uint64_t by_strategy = tally.StartingWith(
      is_int8 || strategy.forced != ForcedStrategy::kInt8Scan ? strategy.engine : "fp16-scan-");
  std::printf("%s on %s, device seed %" PRIu64 ": %" PRIu64 " cases from seed %" PRIu64 ", %" PRIu64
              " of %" PRIu64 " queries by this strategy, %" PRIu64 " rescans\n",
              strategy.name, card.name, device_seed, count, first_seed, by_strategy,
              tally.StartingWith(""), tally.rescans());
  if (count < kCasesPerSeed) return;
  EXPECT_GT(by_strategy, 0U) << "the strategy was never used";
}

TEST_P(GpuConformanceTest, AnswersWithTheOraclesRowsAndBits) {
  const auto& [strategy, slot] = GetParam();
  const char* replayed = std::getenv("SIMILE_CONFORMANCE_SEED");
  const Rotation rotation = Rotation::FromEnvironment();
  for (std::uint64_t seed = 0; seed < kDeviceSeeds && !HasFailure(); ++seed) {
    if (Rotation::SlotOf(seed) != slot) continue;
    if (replayed != nullptr) {
      CheckCases(strategy, seed, std::strtoull(replayed, nullptr, 10), 1);
    } else if (rotation.Covers(seed)) {
      CheckCases(strategy, seed, kFirstSeed + seed * kCasesPerSeed, kCasesPerSeed);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, GpuConformanceTest,
                         ::testing::Combine(::testing::ValuesIn(kStrategies),
                                            ::testing::Range<std::uint64_t>(0, Rotation::kSlots)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_slot_" +
                                  std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace simile::conformance

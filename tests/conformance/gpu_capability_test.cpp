// The GPU engine on an emulated card of each compute capability: what the capability selects
// answers every case with the oracle's rows and bits. Before sm_75 kernels multiply as the code for
// these cards does (kernels/device.h).
//
// A failure prints the case's seed; SIMILE_CONFORMANCE_SEED=<seed> runs that case alone.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "backend/accelerator_kinds.h"
#include "backend/cuda/emulated_gpu.h"
#include "conformance/conformance_check.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::conformance {
namespace {

using tests::ForcedStrategy;

constexpr std::uint64_t kCases = 8;
constexpr std::uint64_t kFirstSeed = 5'000'000;

struct Forced {
  const char* name;
  ForcedStrategy strategy;
};
constexpr Forced kForced[] = {{"as_served", ForcedStrategy::kNone},
                              {"int8_scan", ForcedStrategy::kInt8Scan},
                              {"row_scan", ForcedStrategy::kRowScan},
                              {"gemm", ForcedStrategy::kGemm}};

// How the engine calls what it should answer with: a card without the int8 scan uses the next one.
std::string EngineOf(ForcedStrategy strategy, int capability) {
  switch (strategy) {
    case ForcedStrategy::kInt8Scan:
      if (capability >= backend::kInt8ScanMin) return fmt::format("int8-scan-sm{}", capability);
      [[fallthrough]];
    case ForcedStrategy::kRowScan:
      return fmt::format("{}-sm{}",
                         capability >= backend::kRingScanMin ? "fp16-scan" : "fp16-scan-registers",
                         capability);
    case ForcedStrategy::kGemm:
      return fmt::format("fp16-gemm-sm{}", capability);
    default:
      return "";
  }
}

class GpuCapabilityTest : public ::testing::TestWithParam<std::tuple<std::size_t, Forced>> {};

TEST_P(GpuCapabilityTest, AnswersWithTheOraclesRowsAndBits) {
  const auto& [index, forced] = GetParam();
  const tests::EmulatedCard& card = tests::CardsByCapability()[index];
  const char* const replayed = std::getenv("SIMILE_CONFORMANCE_SEED");
  const std::uint64_t first =
      replayed != nullptr ? std::strtoull(replayed, nullptr, 10) : kFirstSeed;
  const std::uint64_t count = replayed != nullptr ? 1 : kCases;
  EngineTally tally;
  tests::ResetEmulatedGpu(card, 1 + index);
  {
    const auto backend = tests::OpenEmulatedGpu(tests::EmulatedOptions(forced.strategy));
    ASSERT_TRUE(backend.ok()) << backend.status().ToString();
    SearchResult result;  // one for all cases: see ExpectConforms
    for (std::uint64_t i = 0; i < count && !HasFailure(); ++i) {
      ExpectConforms(**backend, first + i, result, tally);
      EXPECT_EQ(emulated_cuda::TakeReport(), "");
      if (HasFailure()) {
        std::printf("replay with SIMILE_CONFORMANCE_SEED=%" PRIu64 "\n", first + i);
      }
    }
  }
  EXPECT_EQ(emulated_cuda::LiveObjects(), 0U) << "something was not released";
  const std::uint64_t by_strategy = tally.StartingWith(EngineOf(forced.strategy, card.capability));
  std::printf("%s on sm_%d (%s): %" PRIu64 " cases, %" PRIu64 " of %" PRIu64
              " queries by this strategy, %" PRIu64 " rescans\n",
              forced.name, card.capability, card.name, count, by_strategy, tally.StartingWith(""),
              tally.rescans());
  if (replayed != nullptr) return;
  EXPECT_GT(by_strategy, 0U) << "the strategy was never used";
  if (card.capability < backend::kInt8ScanMin) {
    EXPECT_EQ(tally.StartingWith("int8-scan-"), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Capabilities, GpuCapabilityTest,
    ::testing::Combine(::testing::Range<std::size_t>(0, tests::CardsByCapability().size()),
                       ::testing::ValuesIn(kForced)),
    [](const auto& test) {
      return fmt::format("sm{}_{}", tests::CardsByCapability()[std::get<0>(test.param)].capability,
                         std::get<1>(test.param).name);
    });

}  // namespace
}  // namespace simile::conformance

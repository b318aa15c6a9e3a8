#include "backend/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/int8_kernels.h"
#include "backend/gpu_search.h"
#include "certificate/canonical_score.h"

namespace simile::backend {
namespace {

using ::testing::HasSubstr;

TEST(RegistryTest, GivesTheReasonWhenItWouldRatherHaveHadAGpu) {
  const auto chosen = ChooseBackend({});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->backend->info().name, "cpu");
  EXPECT_EQ(chosen->reason, WhyNoGpu(DefaultGpuSearch()));
}

TEST(RegistryTest, TakesTheCpuWhenConfiguredTo) {
  RegistryOptions options;
  options.preference = Preference::kCpu;
  const auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->reason, "the configuration asks for the CPU");
}

TEST(RegistryTest, RefusesToStartWhenTheGpuIsDemanded) {
  RegistryOptions options;
  options.preference = Preference::kGpu;
  const auto chosen = ChooseBackend(options);
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr(WhyNoGpu(DefaultGpuSearch())));
}

TEST(RegistryTest, UsesTheInstructionSetAndThreadsAskedFor) {
  RegistryOptions options;
  options.isa = "portable";
  options.threads = 3;
  const auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->backend->info().engine, "int8-portable");
  EXPECT_THAT(chosen->backend->info().device, HasSubstr(", 3 threads"));
}

TEST(RegistryTest, TakesTheBestInstructionSetByDefault) {
  const auto chosen = ChooseBackend({});
  ASSERT_TRUE(chosen.ok());
  const std::string best = cpu::SupportedInt8Kernels().front()->isa;
  EXPECT_EQ(chosen->backend->info().engine, "int8-" + best);
}

TEST(RegistryTest, ScansPlainlyWhenConfiguredTo) {
  RegistryOptions options;
  options.cpu_engine = CpuEngine::kScan;
  const auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  const auto best = certificate::SupportedCanonicalKernels().front()->isa;
  EXPECT_EQ(chosen->backend->info().engine, "scan-" + std::string(best));
}

TEST(RegistryTest, HandsTheTuningToTheEngine) {
  RegistryOptions options;
  options.tuning.scan_rows_max = 500;
  const SegmentShape shape{.row_count = 600, .dim = 64};
  auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_GT(chosen->backend->Plan(shape).host_bytes, 0U);
  options.tuning.scan_rows_max = 600;  // scanned plainly: no index to make room for
  chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->backend->Plan(shape).host_bytes, 0U);
}

TEST(RegistryTest, LeavesTheNibblesOutWhenToldTo) {
  RegistryOptions options;
  options.preference = Preference::kCpu;
  options.isa = "portable";
  const SegmentShape large{1'000'000, 384, Metric::kCosine};
  const auto with = ChooseBackend(options);
  options.nibbles = false;
  const auto without = ChooseBackend(options);
  ASSERT_TRUE(with.ok() && without.ok());
  const std::uint64_t more =
      with->backend->Plan(large).host_bytes - without->backend->Plan(large).host_bytes;
  EXPECT_NEAR(static_cast<double>(more), 1e6 * (384.0 / 2 + 4), 1e7);
}

TEST(RegistryTest, NamesTheInstructionSetsItHasWhenAskedForAnother) {
  RegistryOptions options;
  options.isa = "sse9";
  const auto chosen = ChooseBackend(options);
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("\"sse9\""));
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("portable"));
}

}  // namespace
}  // namespace simile::backend

#include "backend/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/int8_kernels.h"
#include "backend/gpu_search.h"
#include "certificate/canonical_score.h"

namespace simile::backend {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Fake(const std::string& name) { return std::string(SIMILE_FAKES_DIR) + "/" + name; }

// Options for a machine with a driver and this plug-in.
RegistryOptions With(const std::string& plugin, Preference preference = Preference::kAuto) {
  RegistryOptions options;
  options.preference = preference;
  options.gpu_searches = {GpuSearch{Fake("libfake_cuda_driver.so"), {Fake(plugin)}}};
  return options;
}

RegistryOptions OnTheCpu() {
  RegistryOptions options;
  options.preference = Preference::kCpu;
  return options;
}

TEST(RegistryTest, GivesTheReasonWhenTheGpuCannotBeUsed) {
  const auto chosen = ChooseBackend(With("libfake_no_device.so"));
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->backend->info().name, "cpu");
  EXPECT_THAT(chosen->reason, HasSubstr("no CUDA-capable device is detected"));
}

TEST(RegistryTest, TakesTheGpuWhenThereIsOne) {
  for (const Preference preference : {Preference::kAuto, Preference::kGpu}) {
    const auto chosen = ChooseBackend(With("libfake_working.so", preference));
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->backend->info().name, "gpu");
    EXPECT_EQ(chosen->backend->info().engine, "cuda-fake");
    EXPECT_EQ(chosen->reason, "NVIDIA H200 (139 GiB), CUDA 13.0");
  }
}

TEST(RegistryTest, TriesAcceleratorsInOrder) {
  RegistryOptions options = With("libfake_no_device.so");
  options.gpu_searches.push_back(With("libfake_working.so").gpu_searches.front());
  const auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->reason, "NVIDIA H200 (139 GiB), CUDA 13.0");
}

TEST(RegistryTest, GivesTheReasonForEachAccelerator) {
  RegistryOptions options = With("libfake_no_device.so");
  GpuSearch other = With("absent.so").gpu_searches.front();
  static constexpr PluginFile kPlugins[] = {{"libsimile_acme.so", "Acme 1.", "7"}};
  other.kind.a_driver = "an Acme driver";
  other.kind.plugin_files = kPlugins;
  options.gpu_searches.push_back(other);
  const auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->reason,
            "the NVIDIA driver reports no usable device (cudaErrorNoDevice: no CUDA-capable device "
            "is detected); an Acme driver is here, but no GPU plug-in is beside the server "
            "(libsimile_acme.so); `simile doctor` says how to get one");
}

TEST(RegistryTest, TakesTheCpuWhenConfiguredTo) {
  const auto chosen = ChooseBackend(With("libfake_working.so", Preference::kCpu));
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->backend->info().name, "cpu");
  EXPECT_EQ(chosen->reason, "the configuration asks for the CPU");
}

TEST(RegistryTest, RefusesToStartWhenTheGpuIsDemanded) {
  const auto chosen = ChooseBackend(With("libfake_no_device.so", Preference::kGpu));
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(chosen.status().message()),
              StartsWith("the configuration asks for the GPU, which cannot be used: the NVIDIA "
                         "driver reports no usable device"));
}

// A stopped clock.
class StoppedClock final : public Clock {
 public:
  TimePoint Now() const override { return {}; }
  std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  }
};

TEST(RegistryTest, DoesNotUseAGpuThatWasLostThreeTimes) {
  const StoppedClock clock;
  RegistryOptions options = With("libfake_working.so");
  options.gpu.clock = &clock;
  for (const int ago_s : {500, 300, 60}) {
    options.gpu_faults.push_back({clock.WallNow() - std::chrono::seconds(ago_s), "an error"});
  }
  const auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->backend->info().name, "cpu");
  EXPECT_THAT(chosen->reason, StartsWith("the GPU was lost 3 times in the last 10 minutes"));
}

TEST(RegistryTest, UsesTheInstructionSetAndThreadsAskedFor) {
  RegistryOptions options = OnTheCpu();
  options.isa = "portable";
  options.threads = 3;
  const auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->backend->info().engine, "int8-portable");
  EXPECT_THAT(chosen->backend->info().device, HasSubstr(", 3 threads"));
}

TEST(RegistryTest, TakesTheBestInstructionSetByDefault) {
  const auto chosen = ChooseBackend(OnTheCpu());
  ASSERT_TRUE(chosen.ok());
  const std::string best = cpu::SupportedInt8Kernels().front()->isa;
  EXPECT_EQ(chosen->backend->info().engine, "int8-" + best);
}

TEST(RegistryTest, UsesThePlainScanWhenConfiguredTo) {
  RegistryOptions options = OnTheCpu();
  options.cpu_engine = CpuEngine::kScan;
  const auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  const auto best = certificate::SupportedCanonicalKernels().front()->isa;
  EXPECT_EQ(chosen->backend->info().engine, "scan-" + std::string(best));
}

TEST(RegistryTest, PassesTheTuningToTheEngine) {
  RegistryOptions options = OnTheCpu();
  options.tuning.scan_rows_max = 500;
  const SegmentShape shape{.row_count = 600, .dim = 64};
  auto chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_GT(chosen->backend->Plan(shape).host_bytes, 0U);
  options.tuning.scan_rows_max = 600;  // the plain scan needs no index
  chosen = ChooseBackend(options);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->backend->Plan(shape).host_bytes, 0U);
}

TEST(RegistryTest, KeepsNoInt4CodesWhenConfiguredNotTo) {
  RegistryOptions options = OnTheCpu();
  options.isa = "portable";
  const SegmentShape large{1'000'000, 384, Metric::kCosine};
  const auto with = ChooseBackend(options);
  options.int4 = false;
  const auto without = ChooseBackend(options);
  ASSERT_TRUE(with.ok() && without.ok());
  const std::uint64_t more =
      with->backend->Plan(large).host_bytes - without->backend->Plan(large).host_bytes;
  EXPECT_NEAR(static_cast<double>(more), 1e6 * (384.0 / 2 + 4), 1e7);
}

TEST(RegistryTest, NamesTheInstructionSetsItHasWhenAskedForAnother) {
  RegistryOptions options = OnTheCpu();
  options.isa = "sse9";
  const auto chosen = ChooseBackend(options);
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("\"sse9\""));
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("portable"));
}

}  // namespace
}  // namespace simile::backend

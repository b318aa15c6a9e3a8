#include "backend/gpu_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backend/build_id.h"
#include "files/scratch_folder.h"

namespace simile::backend {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

namespace fs = std::filesystem;

// The fakes that CMake builds beside this test.
std::string Fake(const std::string& name) { return std::string(SIMILE_FAKES_DIR) + "/" + name; }

const std::string kDriver = Fake("libfake_cuda_driver.so");

// Returns why the GPU is not used; empty if it is.
std::string Reason(const GpuSearch& search, const GpuOptions& options = {}) {
  return std::string(OpenGpu(search, options).status().message());
}

std::string ReasonWith(const std::string& plugin, const GpuOptions& options = {}) {
  return Reason({kDriver, {Fake(plugin)}}, options);
}

TEST(GpuSearchTest, ReportsAMissingDriver) {
  EXPECT_EQ(Reason({"libcuda-that-is-not-here.so.1", {Fake("libfake_working.so")}}),
            "no NVIDIA driver on this machine (libcuda-that-is-not-here.so.1 not found)");
}

TEST(GpuSearchTest, ReportsWhyADriverCannotBeLoaded) {
  const ScratchFolder scratch;
  scratch.Write("libcuda.so.1", "not a library");
  const std::filesystem::path driver = scratch.path() / "libcuda.so.1";
  EXPECT_THAT(Reason({driver.string(), {}}),
              AllOf(StartsWith("the NVIDIA driver library cannot be loaded: libcuda.so.1: "),
                    Not(HasSubstr(scratch.path().string()))));
}

TEST(GpuSearchTest, ReportsAMissingPlugin) {
  EXPECT_EQ(ReasonWith("absent.so"),
            "an NVIDIA driver is here, but no GPU plug-in is beside the server (libsimile_cuda.so, "
            "libsimile_cuda12.so); `simile doctor` says how to get one");
}

TEST(GpuSearchTest, ReportsWhyAPluginCannotBeLoaded) {
  const ScratchFolder scratch;
  scratch.Write("libsimile_cuda.so", "not a library");
  EXPECT_THAT(Reason({kDriver, {(scratch.path() / "libsimile_cuda.so").string()}}),
              AllOf(StartsWith("the GPU plug-in cannot be loaded: libsimile_cuda.so: "),
                    Not(HasSubstr(scratch.path().string()))));
}

TEST(GpuSearchTest, ReportsADriverWithoutDevices) {
  EXPECT_EQ(ReasonWith("libfake_no_device.so"),
            "the NVIDIA driver reports no usable device (cudaErrorNoDevice: no CUDA-capable device "
            "is detected)");
}

TEST(GpuSearchTest, ReportsAMissingDeviceNumber) {
  GpuOptions options;
  options.device = 2;
  EXPECT_EQ(ReasonWith("libfake_two_devices.so", options),
            "gpu.device is 2, which this machine does not have; it has 0, NVIDIA H200 (139 GiB); "
            "1, NVIDIA T4 (16 GiB)");
}

TEST(GpuSearchTest, ReportsWhyTheDeviceCannotBeOpened) {
  ASSERT_EQ(setenv("FAKE_GPU_OPEN_ERROR", "full", 1), 0);
  EXPECT_EQ(ReasonWith("libfake_working.so"),
            "NVIDIA H200 (139 GiB) cannot be used: 300.0 MiB are needed and 12.0 MiB are free");
  ASSERT_EQ(unsetenv("FAKE_GPU_OPEN_ERROR"), 0);
}

TEST(GpuSearchTest, SaysWhyTheDeviceIsSlowerThanItCouldBe) {
  const auto opened = OpenGpu({kDriver, {Fake("libfake_no_blas.so")}}, {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->description,
            "NVIDIA H200 (139 GiB), CUDA 13.0; large batches take longer, because cuBLAS cannot be "
            "loaded: libcublas.so.13: cannot open shared object file: No such file or directory");
}

TEST(GpuSearchTest, OpensTheDevice) {
  const auto opened = OpenGpu({kDriver, {Fake("libfake_working.so")}}, {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->description, "NVIDIA H200 (139 GiB), CUDA 13.0");
  EXPECT_EQ(opened->backend->info().name, "gpu");
}

TEST(GpuSearchTest, OpensTheConfiguredDevice) {
  GpuOptions options;
  options.device = 1;
  const auto opened = OpenGpu({kDriver, {Fake("libfake_two_devices.so")}}, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->description, "NVIDIA T4 (16 GiB), CUDA 13.0");
}

TEST(GpuSearchTest, TriesPluginPathsInOrder) {
  EXPECT_TRUE(
      OpenGpu({kDriver, {Fake("absent.so"), Fake("libfake_working.so"), Fake("absent.so")}}, {})
          .ok());
}

// Both plug-ins beside the server, and what the machine has of CUDA.
class TwoPluginsTest : public ::testing::Test {
 protected:
  ~TwoPluginsTest() override {
    unsetenv("FAKE_CUDA_VERSION");
    unsetenv("FAKE_GPU_NO_CODE_ERROR");
  }

  static void DriverRuns(const char* cuda) { setenv("FAKE_CUDA_VERSION", cuda, 1); }
  static absl::StatusOr<OpenedGpu> Open(const std::string& first, const std::string& second) {
    return OpenGpu({kDriver, {Fake(first), Fake(second)}}, {});
  }
  // What is said of the GPU that was opened, or why none was.
  static std::string Said(const std::string& first, const std::string& second) {
    const auto opened = Open(first, second);
    return opened.ok() ? opened->description : std::string(opened.status().message());
  }
};

TEST_F(TwoPluginsTest, TakesTheFirstThatTheDriverRuns) {
  DriverRuns("13000");
  const auto opened = Open("libfake_working.so", "libfake_cuda12.so");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->plugin_file, "libfake_working.so");
  EXPECT_EQ(opened->description, "NVIDIA H200 (139 GiB), CUDA 13.0");
}

TEST_F(TwoPluginsTest, TakesTheSecondWithAnOlderDriverAndSaysWhy) {
  DriverRuns("12040");
  const auto opened = Open("libfake_working.so", "libfake_cuda12.so");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->plugin_file, "libfake_cuda12.so");
  EXPECT_EQ(opened->description,
            "NVIDIA H200 (139 GiB), CUDA 12.4, through libfake_cuda12.so (libfake_working.so: the "
            "NVIDIA driver runs CUDA 12.4, the plug-in needs CUDA 13.0 (driver 580 or later))");
}

TEST_F(TwoPluginsTest, TakesTheSecondForACardThatTheFirstHasNoCodeFor) {
  for (const char* code : {"98", "209", "222"}) {
    setenv("FAKE_GPU_NO_CODE_ERROR", code, 1);
    EXPECT_EQ(Said("libfake_no_code.so", "libfake_cuda12.so"),
              "NVIDIA H200 (139 GiB), CUDA 13.0, through libfake_cuda12.so (libfake_no_code.so: "
              "NVIDIA H200 (139 GiB) cannot be used: the plug-in has no code for it)")
        << code;
  }
}

TEST_F(TwoPluginsTest, TakesTheSecondWhenTheCublasOfTheFirstIsAbsent) {
  EXPECT_THAT(Said("libfake_no_blas.so", "libfake_cuda12.so"),
              AllOf(StartsWith("NVIDIA H200 (139 GiB), CUDA 13.0, through libfake_cuda12.so "
                               "(libfake_no_blas.so: "),
                    HasSubstr("libcublas.so.13: cannot open")));
}

TEST_F(TwoPluginsTest, TakesTheSecondWhenTheFirstIsOfAnotherBuild) {
  EXPECT_THAT(Said("libfake_other_build.so", "libfake_cuda12.so"),
              HasSubstr("through libfake_cuda12.so (libfake_other_build.so is from another build"));
}

TEST_F(TwoPluginsTest, GiveTheReasonOfEachWhenTheDriverIsTooOldForBoth) {
  DriverRuns("11080");
  EXPECT_EQ(Said("libfake_working.so", "libfake_cuda12.so"),
            "libfake_working.so: the NVIDIA driver runs CUDA 11.8, the plug-in needs CUDA 13.0 "
            "(driver 580 or later); libfake_cuda12.so: the NVIDIA driver runs CUDA 11.8, the "
            "plug-in needs CUDA 12.9 (driver 525 or later)");
  const auto opened = Open("libfake_working.so", "libfake_cuda12.so");
  EXPECT_EQ(ParseDeviceError(opened.status()), 35);
}

TEST_F(TwoPluginsTest, GiveTheReasonOfEachThatWasTried) {
  DriverRuns("12040");
  EXPECT_THAT(Said("libfake_working.so", "libfake_other_build.so"),
              AllOf(StartsWith("libfake_other_build.so is from another build"),
                    HasSubstr("; libfake_working.so: the NVIDIA driver runs CUDA 12.4, ")));
  DriverRuns("13000");
  EXPECT_THAT(Said("libfake_no_code.so", "libfake_other_build.so"),
              AllOf(StartsWith("libfake_no_code.so: NVIDIA H200 (139 GiB) cannot be used: "),
                    HasSubstr("; libfake_other_build.so is from another build")));
  EXPECT_EQ(ParseDeviceError(Open("libfake_no_code.so", "libfake_other_build.so").status()), 209);
}

// One without cuBLAS is better than none.
TEST_F(TwoPluginsTest, TakesTheFirstThatRunsWhereNoneHasItsCublas) {
  for (const char* second :
       {"libfake_no_blas.so", "libfake_other_build.so", "libfake_no_code.so"}) {
    EXPECT_THAT(Said("libfake_no_blas.so", second),
                AllOf(StartsWith("NVIDIA H200 (139 GiB), CUDA 13.0; large batches take longer, "),
                      Not(HasSubstr("through"))))
        << second;
  }
  EXPECT_THAT(Said("libfake_no_code.so", "libfake_no_blas.so"),
              AllOf(HasSubstr(", through libfake_no_blas.so (libfake_no_code.so: "),
                    HasSubstr("); large batches take longer, ")));
}

// Another build of the engine has no more devices and no more memory.
TEST_F(TwoPluginsTest, LeaveTheSecondUntriedWhenItCannotDoBetter) {
  EXPECT_EQ(Said("libfake_no_device.so", "libfake_cuda12.so"),
            "the NVIDIA driver reports no usable device (cudaErrorNoDevice: no CUDA-capable device "
            "is detected)");
  setenv("FAKE_GPU_OPEN_ERROR", "full", 1);
  EXPECT_THAT(Said("libfake_working.so", "libfake_cuda12.so"),
              AllOf(StartsWith("NVIDIA H200 (139 GiB) cannot be used: "), Not(HasSubstr(".so"))));
  unsetenv("FAKE_GPU_OPEN_ERROR");
}

TEST(GpuSearchTest, NeedsTheDriverOfThePluginsToolkit) {
  const AcceleratorKind& cuda = AcceleratorKinds().front();
  EXPECT_EQ(OldestDriverFor(cuda, "CUDA 13.0"), "580");
  EXPECT_EQ(OldestDriverFor(cuda, "CUDA 12.8"), "525");
  EXPECT_EQ(OldestDriverFor(cuda, "CUDA 11.8"), "");
  setenv("FAKE_CUDA_VERSION", "12040", 1);
  EXPECT_EQ(ReasonWith("libfake_working.so"),
            "the NVIDIA driver runs CUDA 12.4, the plug-in needs CUDA 13.0 (driver 580 or later)");
  unsetenv("FAKE_CUDA_VERSION");
}

TEST(GpuSearchTest, RefusesAPluginOfAnotherBuild) {
  EXPECT_THAT(ReasonWith("libfake_other_build.so"),
              AllOf(StartsWith("libfake_other_build.so is from another build"),
                    HasSubstr("0.0.1-of-yesterday"), HasSubstr(kBuildId)));
}

TEST(GpuSearchTest, RefusesAPluginWithAnotherInterface) {
  EXPECT_THAT(ReasonWith("libfake_other_interface.so"), HasSubstr("with interface 99"));
}

TEST(GpuSearchTest, RefusesALibraryWithoutTheEntrySymbol) {
  EXPECT_EQ(ReasonWith("libfake_cuda_driver.so"),
            "libfake_cuda_driver.so is not a Simile plug-in: it has no simile_cuda_plugin");
}

TEST(GpuSearchTest, LooksBesideTheExecutableByDefault) {
  const std::vector<GpuSearch> searches = DefaultGpuSearches();
  ASSERT_EQ(searches.size(), AcceleratorKinds().size());
  const GpuSearch& search = searches.front();
  EXPECT_EQ(search.driver_library, "libcuda.so.1");
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path other = folder.parent_path() / "lib" / "simile";
  EXPECT_THAT(search.plugin_paths,
              ::testing::ElementsAre((folder / "libsimile_cuda.so").string(),
                                     (other / "libsimile_cuda.so").string(),
                                     (folder / "libsimile_cuda12.so").string(),
                                     (other / "libsimile_cuda12.so").string()));
}

}  // namespace
}  // namespace simile::backend

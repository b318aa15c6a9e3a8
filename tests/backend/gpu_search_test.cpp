#include "backend/gpu_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
            "an NVIDIA driver is here, but libsimile_cuda.so is not beside the server: this build "
            "has no GPU plug-in");
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
  EXPECT_EQ(ReasonWith("libfake_no_blas.so"),
            "NVIDIA H200 (139 GiB) cannot be used: cuBLAS cannot be loaded: "
            "libcublas.so.13: cannot open shared object file: No such file or directory");
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
  EXPECT_THAT(search.plugin_paths,
              ::testing::ElementsAre(
                  (folder / "libsimile_cuda.so").string(),
                  (folder.parent_path() / "lib" / "simile" / "libsimile_cuda.so").string()));
}

}  // namespace
}  // namespace simile::backend

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

std::string ReasonWith(const std::string& plugin) {
  return WhyNoGpu({Fake("libfake_cuda_driver.so"), {Fake(plugin)}});
}

TEST(GpuSearchTest, SaysThatThereIsNoDriver) {
  EXPECT_EQ(WhyNoGpu({"libcuda-that-is-not-here.so.1", {Fake("libfake_one_device.so")}}),
            "no NVIDIA driver on this machine (libcuda-that-is-not-here.so.1 not found)");
}

TEST(GpuSearchTest, SaysWhyADriverThatIsThereCannotBeLoaded) {
  const ScratchFolder scratch;
  scratch.Write("libcuda.so.1", "this is no library");
  const std::filesystem::path driver = scratch.path() / "libcuda.so.1";
  EXPECT_THAT(WhyNoGpu({driver.string(), {}}),
              AllOf(StartsWith("the NVIDIA driver library cannot be loaded: libcuda.so.1: "),
                    Not(HasSubstr(scratch.path().string()))));
}

TEST(GpuSearchTest, SaysThatThereIsNoPlugin) {
  EXPECT_EQ(ReasonWith("absent.so"),
            "an NVIDIA driver is here, but libsimile_cuda.so is not beside the server: this build "
            "has no GPU plug-in");
}

TEST(GpuSearchTest, TriesThePlacesInOrder) {
  EXPECT_THAT(WhyNoGpu({Fake("libfake_cuda_driver.so"),
                        {Fake("absent.so"), Fake("libfake_one_device.so"), Fake("absent.so")}}),
              HasSubstr("H200"));
}

TEST(GpuSearchTest, NamesTheDevicesThatThisReleaseDoesNotUse) {
  EXPECT_EQ(ReasonWith("libfake_one_device.so"),
            "NVIDIA H200 (139 GiB) is here; this release answers on the CPU");
  EXPECT_EQ(ReasonWith("libfake_two_devices.so"),
            "NVIDIA H200 (139 GiB), NVIDIA T4 (16 GiB) are here; this release answers on the CPU");
}

TEST(GpuSearchTest, RefusesAPluginOfAnotherBuildByName) {
  EXPECT_THAT(ReasonWith("libfake_other_build.so"),
              AllOf(StartsWith("libfake_other_build.so is from another build"),
                    HasSubstr("0.0.1-of-yesterday"), HasSubstr(kBuildId)));
}

TEST(GpuSearchTest, RefusesAPluginWithAnotherInterface) {
  EXPECT_THAT(ReasonWith("libfake_other_interface.so"), HasSubstr("with interface 99"));
}

TEST(GpuSearchTest, RefusesALibraryThatIsNoPlugin) {
  EXPECT_EQ(ReasonWith("libfake_cuda_driver.so"),
            "libfake_cuda_driver.so is not a Simile plug-in: it has no simile_cuda_plugin");
}

TEST(GpuSearchTest, LooksBesideTheExecutableByDefault) {
  const GpuSearch search = DefaultGpuSearch();
  EXPECT_EQ(search.driver_library, "libcuda.so.1");
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  EXPECT_THAT(search.plugin_paths,
              ::testing::ElementsAre(
                  (folder / "libsimile_cuda.so").string(),
                  (folder.parent_path() / "lib" / "simile" / "libsimile_cuda.so").string()));
}

}  // namespace
}  // namespace simile::backend

// The real plug-in with a fake driver: CMake puts the fake driver on the library path, where CUDA's
// runtime looks for it by name (see CMakeLists.txt).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "backend/gpu_search.h"

namespace simile::backend {
namespace {

constexpr int kMajor = SIMILE_CUDA_MAJOR;  // of the plug-in's CUDA

// Says why the GPU is not used, and ends the process: CUDA's runtime asks the driver once in each.
[[noreturn]] void Report(int version) {
  setenv("FAKE_CUDA_VERSION", std::to_string(version).c_str(), 1);
  setenv("FAKE_CUDA_ERROR", "100", 1);
  const auto opened = OpenGpu({"libcuda.so.1", {SIMILE_CUDA_PLUGIN_FILE}}, {});
  std::fputs(std::string(opened.status().message()).c_str(), stderr);
  std::exit(0);
}

TEST(CudaPluginTest, ReportsTheDriversErrorByName) {
  for (const int minor : {0, 99}) {
    EXPECT_EXIT(Report(kMajor * 1'000 + minor * 10), testing::ExitedWithCode(0),
                "^the NVIDIA driver reports no usable device .cudaErrorNoDevice: no CUDA-capable "
                "device is detected.$");
  }
}

TEST(CudaPluginTest, NeedsADriverOfItsCuda) {
  EXPECT_EXIT(Report((kMajor - 1) * 1'000 + 40), testing::ExitedWithCode(0),
              fmt::format("^the NVIDIA driver runs CUDA {}.4, the plug-in needs CUDA {}.[0-9] "
                          ".driver {} or later.$",
                          kMajor - 1, kMajor, kMajor == 12 ? 525 : 580));
}

}  // namespace
}  // namespace simile::backend

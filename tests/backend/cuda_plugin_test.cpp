// The real plug-in with a failing driver: CMake puts the fake driver on the library path, where
// CUDA's runtime looks for it by name (see CMakeLists.txt).
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backend/gpu_search.h"

namespace simile::backend {
namespace {

TEST(CudaPluginTest, ReportsTheDriversErrorByName) {
  // CUDA's runtime reads the error once in a process, so there is one test.
  ASSERT_EQ(setenv("FAKE_CUDA_ERROR", "100", 1), 0);
  const auto opened = OpenGpu({"libcuda.so.1", {SIMILE_CUDA_PLUGIN_FILE}}, {});
  EXPECT_EQ(std::string(opened.status().message()),
            "the NVIDIA driver reports no usable device (cudaErrorNoDevice: no CUDA-capable device "
            "is detected)");
}

}  // namespace
}  // namespace simile::backend

// The real plug-in with a driver that fails: CUDA's runtime finds the driver by its name on the
// library path, which CMake points at the fake one (see CMakeLists.txt).
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backend/gpu_search.h"

namespace simile::backend {
namespace {

TEST(CudaPluginTest, ReportsTheDriversErrorByName) {
  // The first call decides for the life of the process, so there is one case.
  ASSERT_EQ(setenv("FAKE_CUDA_ERROR", "100", 1), 0);
  const auto opened = OpenGpu({"libcuda.so.1", {SIMILE_CUDA_PLUGIN_FILE}}, {});
  EXPECT_EQ(std::string(opened.status().message()),
            "the NVIDIA driver reports no usable device (cudaErrorNoDevice: no CUDA-capable device "
            "is detected)");
}

}  // namespace
}  // namespace simile::backend

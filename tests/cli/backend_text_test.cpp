#include "cli/backend_text.h"

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

TEST(BackendTextTest, NamesTheBackendAndWhyItWasChosen) {
  v1::BackendStatus backend;
  backend.set_kind(v1::BACKEND_KIND_GPU);
  EXPECT_EQ(BackendText(backend), "gpu");
  backend.set_kind(v1::BACKEND_KIND_CPU);
  backend.set_reason("no NVIDIA driver");
  EXPECT_EQ(BackendText(backend), "cpu: no NVIDIA driver");
}

TEST(BackendTextTest, ShowsGpuMemoryByPurpose) {
  v1::BackendStatus backend;
  EXPECT_EQ(DeviceMemoryTable(backend, Terminal{}), "");
  v1::DeviceMemory& memory = *backend.add_device_memory();
  memory.set_kind("rows-fp16");
  memory.set_bytes(2 << 20);
  memory.set_peak_bytes(4 << 20);
  EXPECT_EQ(DeviceMemoryTable(backend, Terminal{}),
            "GPU memory      now     peak\n"
            "rows-fp16   2.0 MiB  4.0 MiB\n");
}

}  // namespace
}  // namespace simile::cli

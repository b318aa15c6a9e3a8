// Plug-ins that only pretend, compiled once for each FAKE_PLUGIN below.
#include <cstdio>
#include <cstdlib>

#include "backend/build_id.h"
#include "backend/cuda/plugin.h"
#include "backend/fake_gpu.h"

#define FAKE_WORKING 1
#define FAKE_TWO_DEVICES 2
#define FAKE_OTHER_BUILD 3
#define FAKE_OTHER_INTERFACE 4
#define FAKE_NO_BLAS 5
#define FAKE_NO_DEVICE 6

namespace {

using simile::testing::FakeGpuControl;

void AddDevice(SimileCudaProbe& probe, const char* name, std::uint64_t gib) {
  SimileCudaDevice& device = probe.devices[probe.device_count++];
  std::snprintf(device.name, sizeof(device.name), "%s", name);
  device.memory_bytes = gib << 30;
  device.compute_major = 9;
}

void Probe(SimileCudaProbe* probe) {
  *probe = SimileCudaProbe{};
  probe->driver_version = 13'000;
  if (FAKE_PLUGIN == FAKE_NO_DEVICE) {
    probe->error = 100;
    std::snprintf(probe->error_name, sizeof(probe->error_name), "cudaErrorNoDevice");
    std::snprintf(probe->error_text, sizeof(probe->error_text),
                  "no CUDA-capable device is detected");
    return;
  }
  AddDevice(*probe, "NVIDIA H200", 139);
  if (FAKE_PLUGIN == FAKE_TWO_DEVICES) AddDevice(*probe, "NVIDIA T4", 16);
}

// What tests in the same process reach by FakeGpuControls.
FakeGpuControl& Control() {
  static FakeGpuControl control;
  return control;
}

// Programs are told what the calls come to by these, as FakeGpuControl::NextOf.
void ObeyEnvironment() {
  const std::pair<const char*, FakeGpuControl::Call> variables[] = {
      {"FAKE_GPU_LOADS", FakeGpuControl::Call::kLoad},
      {"FAKE_GPU_SEARCHES", FakeGpuControl::Call::kSearch},
      {"FAKE_GPU_SCORES", FakeGpuControl::Call::kScore}};
  for (const auto& [name, call] : variables) {
    if (const char* words = std::getenv(name); words != nullptr) Control().NextOf(call, words);
  }
}

void Open(const simile::backend::GpuOptions* /*options*/,
          absl::StatusOr<std::unique_ptr<simile::Backend>>* backend) {
  if (FAKE_PLUGIN == FAKE_NO_BLAS) {
    *backend = absl::FailedPreconditionError(
        "cuBLAS cannot be loaded: libcublas.so.13: cannot open shared object file: No "
        "such file or directory");
    return;
  }
  ObeyEnvironment();
  *backend = simile::testing::MakeFakeGpu(Control());
}

constexpr SimileCudaPlugin kPlugin{
    FAKE_PLUGIN == FAKE_OTHER_INTERFACE ? 99U : SIMILE_CUDA_INTERFACE_VERSION,
    FAKE_PLUGIN == FAKE_OTHER_BUILD ? "0.0.1-of-yesterday" : simile::backend::kBuildId, &Probe,
    &Open};

}  // namespace

extern "C" const SimileCudaPlugin* simile_cuda_plugin();
extern "C" FakeGpuControl* FakeGpuControls();

extern "C" const SimileCudaPlugin* simile_cuda_plugin() { return &kPlugin; }
extern "C" FakeGpuControl* FakeGpuControls() { return &Control(); }

// Fake plug-ins: compiled once for each value of FAKE_PLUGIN below. FAKE_GPU_PROBE_ERROR is the
// code with which its devices cannot be listed, FAKE_GPU_OPEN_ERROR that of opening one, or `full`,
// FAKE_GPU_NO_CODE_ERROR that of the plug-in which has no code for them (else 209).
// FAKE_CUDA_VERSION is the newest CUDA that the driver runs, as for fake_cuda_driver.c.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <absl/strings/cord.h>

#include "backend/accelerator_plugin.h"
#include "backend/build_id.h"
#include "backend/fake_gpu.h"

#define FAKE_WORKING 1
#define FAKE_TWO_DEVICES 2
#define FAKE_OTHER_BUILD 3
#define FAKE_OTHER_INTERFACE 4
#define FAKE_NO_BLAS 5
#define FAKE_NO_DEVICE 6
#define FAKE_NO_CODE 7
#define FAKE_CUDA12 8

namespace {

using simile::tests::FakeGpuControl;

void AddDevice(SimileDeviceProbe& probe, const char* name, std::uint64_t gib) {
  SimileDevice& device = probe.devices[probe.device_count++];
  std::snprintf(device.name, sizeof(device.name), "%s", name);
  device.memory_bytes = gib << 30;
  std::snprintf(device.bus_id, sizeof(device.bus_id), "0000:%02x:00.0", probe.device_count);
}

void SetVersion(char (&to)[SIMILE_PLUGIN_TEXT_BYTES], int version) {
  std::snprintf(to, sizeof(to), "CUDA %d.%d", version / 1'000, version % 1'000 / 10);
}

void Probe(SimileDeviceProbe* probe) {
  *probe = SimileDeviceProbe{};
  constexpr int kRuntime = FAKE_PLUGIN == FAKE_CUDA12 ? 12'090 : 13'000;
  const char* version = std::getenv("FAKE_CUDA_VERSION");
  const int driver = version != nullptr ? std::atoi(version) : 13'000;
  SetVersion(probe->driver, driver);
  SetVersion(probe->runtime, kRuntime);
  if (driver / 1'000 < kRuntime / 1'000) {
    probe->error = 35;
    std::snprintf(probe->error_name, sizeof(probe->error_name), "cudaErrorInsufficientDriver");
    return;
  }
  if (const char* error = std::getenv("FAKE_GPU_PROBE_ERROR"); error != nullptr) {
    probe->error = std::atoi(error);
    std::snprintf(probe->error_name, sizeof(probe->error_name), "cudaError%s", error);
    std::snprintf(probe->error_text, sizeof(probe->error_text), "as the test asked");
    return;
  }
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

// Tests in the same process reach it through FakeGpuControls.
FakeGpuControl& Control() {
  static FakeGpuControl control;
  return control;
}

// Reads the outcomes of calls from the environment, as FakeGpuControl::ParseNext takes them.
void ReadOutcomesFromEnvironment() {
  const std::pair<const char*, FakeGpuControl::Call> variables[] = {
      {"FAKE_GPU_LOADS", FakeGpuControl::Call::kLoad},
      {"FAKE_GPU_SEARCHES", FakeGpuControl::Call::kSearch},
      {"FAKE_GPU_SCORES", FakeGpuControl::Call::kScore}};
  for (const auto& [name, call] : variables) {
    if (const char* words = std::getenv(name); words != nullptr) Control().ParseNext(call, words);
  }
}

void Open(const simile::backend::GpuOptions* /*options*/,
          absl::StatusOr<std::unique_ptr<simile::Backend>>* backend) {
  if (FAKE_PLUGIN == FAKE_NO_CODE) {
    const char* error = std::getenv("FAKE_GPU_NO_CODE_ERROR");
    absl::Status status = absl::FailedPreconditionError("the plug-in has no code for it");
    status.SetPayload(simile::backend::kDeviceErrorPayload,
                      absl::Cord(error != nullptr ? error : "209"));
    *backend = status;
    return;
  }
  if (const char* error = std::getenv("FAKE_GPU_OPEN_ERROR"); error != nullptr) {
    absl::Status status = simile::tests::GpuFull();
    if (std::string_view(error) != "full") {
      status = absl::InternalError("the device cannot be opened");
      status.SetPayload(simile::backend::kDeviceErrorPayload, absl::Cord(error));
    }
    *backend = status;
    return;
  }
  ReadOutcomesFromEnvironment();
  *backend = simile::tests::MakeFakeGpu(
      Control(), FAKE_PLUGIN == FAKE_NO_BLAS
                     ? "large batches take longer, because cuBLAS cannot be loaded: "
                       "libcublas.so.13: cannot open shared object file: No such file or directory"
                     : "");
}

constexpr SimilePlugin kPlugin{
    FAKE_PLUGIN == FAKE_OTHER_INTERFACE ? 99U : SIMILE_PLUGIN_INTERFACE_VERSION,
    FAKE_PLUGIN == FAKE_OTHER_BUILD ? "0.0.1-of-yesterday" : simile::backend::kBuildId, &Probe,
    &Open, FAKE_PLUGIN == FAKE_CUDA12 ? "CUDA 12.9" : "CUDA 13.0"};

}  // namespace

extern "C" const SimilePlugin* simile_cuda_plugin();
extern "C" FakeGpuControl* FakeGpuControls();

extern "C" const SimilePlugin* simile_cuda_plugin() { return &kPlugin; }
extern "C" FakeGpuControl* FakeGpuControls() { return &Control(); }

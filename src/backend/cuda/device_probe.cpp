#include "backend/cuda/device_probe.h"

#include <cuda_runtime_api.h>

#include <cstdio>

namespace simile::backend::cuda {
namespace {

void Copy(char (&to)[SIMILE_PLUGIN_TEXT_BYTES], const char* text) {
  std::snprintf(to, sizeof(to), "%s", text);
}

// 12080 becomes "CUDA 12.8".
void SetVersion(char (&to)[SIMILE_PLUGIN_TEXT_BYTES], int version) {
  if (version == 0) return;  // there is no driver
  std::snprintf(to, sizeof(to), "CUDA %d.%d", version / 1000, version % 1000 / 10);
}

void SetError(SimileDeviceProbe& probe, cudaError_t error) {
  probe.error = static_cast<std::int32_t>(error);
  Copy(probe.error_name, cudaGetErrorName(error));
  Copy(probe.error_text, cudaGetErrorString(error));
}

}  // namespace

void ProbeDevices(SimileDeviceProbe& probe) noexcept {
  probe = SimileDeviceProbe{};
  // Known even when the devices cannot be listed; a version that cannot be read stays empty.
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) SetVersion(probe.runtime, version);
  if (cudaDriverGetVersion(&version) == cudaSuccess) SetVersion(probe.driver, version);

  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return SetError(probe, error);
  }
  if (count == 0) return SetError(probe, cudaErrorNoDevice);
  for (int id = 0; id < count && probe.device_count < SIMILE_PLUGIN_DEVICES_MAX; ++id) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, id); error != cudaSuccess) {
      return SetError(probe, error);
    }
    SimileDevice& device = probe.devices[probe.device_count++];
    Copy(device.name, properties.name);
    device.memory_bytes = properties.totalGlobalMem;
    std::snprintf(device.bus_id, sizeof(device.bus_id), "%04x:%02x:%02x.0",
                  static_cast<unsigned>(properties.pciDomainID),
                  static_cast<unsigned>(properties.pciBusID),
                  static_cast<unsigned>(properties.pciDeviceID));
  }
}

}  // namespace simile::backend::cuda

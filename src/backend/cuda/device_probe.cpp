#include "backend/cuda/device_probe.h"

#include <cuda_runtime_api.h>

#include <cstdio>

namespace simile::backend::cuda {
namespace {

void Copy(char (&to)[SIMILE_CUDA_NAME_BYTES], const char* text) {
  std::snprintf(to, sizeof(to), "%s", text);
}

void SetError(SimileCudaProbe& probe, cudaError_t error) {
  probe.error = static_cast<std::int32_t>(error);
  Copy(probe.error_name, cudaGetErrorName(error));
  Copy(probe.error_text, cudaGetErrorString(error));
}

}  // namespace

void ProbeDevices(SimileCudaProbe& probe) noexcept {
  probe = SimileCudaProbe{};
  // The versions are worth having even when the devices cannot be listed, and 0 when they cannot
  // be had themselves.
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) probe.runtime_version = version;
  version = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess) probe.driver_version = version;

  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return SetError(probe, error);
  }
  if (count == 0) return SetError(probe, cudaErrorNoDevice);
  for (int id = 0; id < count && probe.device_count < SIMILE_CUDA_DEVICES_MAX; ++id) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, id); error != cudaSuccess) {
      return SetError(probe, error);
    }
    SimileCudaDevice& device = probe.devices[probe.device_count++];
    Copy(device.name, properties.name);
    device.memory_bytes = properties.totalGlobalMem;
    device.compute_major = properties.major;
    device.compute_minor = properties.minor;
  }
}

}  // namespace simile::backend::cuda

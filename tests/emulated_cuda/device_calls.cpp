// The runtime's calls about the device and its kernels, and launches.

#include <cstdio>

#include "emulated_cuda/device_state.h"

using emulated_cuda::Call;
using emulated_cuda::kSharedDefault;
using emulated_cuda::kThreadsMax;
using emulated_cuda::Options;
using emulated_cuda::RefuseWhileCapturing;
using emulated_cuda::SetLast;
using emulated_cuda::State;

namespace {

constexpr int kReservedShared = 1024;  // of a block, by the system

int SharedOfMultiprocessor(const Options& options) {
  return static_cast<int>(options.shared_bytes_max) + kReservedShared;
}

}  // namespace

namespace emulated_cuda {

cudaError_t LaunchBody(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes,
                       cudaStream_t stream, bool together, std::function<void()> body) {
  const Call call("launch", kernel);
  if (call.error() != cudaSuccess) return call.error();
  DeviceState& state = State();
  const cudaStream_t found = state.streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > kThreadsMax || block.z > 64 || blocks == 0 || grid.y > 65535 ||
      grid.z > 65535 || grid.x > 0x7FFFFFFF) {
    return SetLast(cudaErrorInvalidConfiguration);
  }
  if (shared_bytes > state.kernels.Find(kernel).dynamic_bytes_max) {
    return SetLast(cudaErrorInvalidValue);
  }
  if (together && blocks > static_cast<std::size_t>(state.options.multiprocessors)) {
    return SetLast(cudaErrorCooperativeLaunchTooLarge);
  }
  return state.streams.Queue(found, [=, body = std::move(body)] {
    RunGrid(kernel, grid, block, shared_bytes, together, body);
  });
}

}  // namespace emulated_cuda

extern "C" {

// NOLINTBEGIN: these names are CUDA's, not ours.

cudaError_t cudaRuntimeGetVersion(int* version) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  return SetLast(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int* device) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (device != 0) return SetLast(cudaErrorInvalidDevice);
  const Options& options = State().options;
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "Emulated CUDA device");
  properties->totalGlobalMem = options.memory_bytes;
  properties->sharedMemPerBlock = kSharedDefault;
  properties->sharedMemPerBlockOptin = options.shared_bytes_max;
  properties->sharedMemPerMultiprocessor =
      static_cast<std::size_t>(SharedOfMultiprocessor(options));
  properties->major = options.compute_capability / 10;
  properties->minor = options.compute_capability % 10;
  properties->multiProcessorCount = options.multiprocessors;
  properties->warpSize = 32;
  properties->pciBusID = 1;
  properties->maxThreadsPerBlock = kThreadsMax;
  properties->maxThreadsPerMultiProcessor = kThreadsMax;
  properties->l2CacheSize = static_cast<int>(options.l2_bytes);
  properties->cooperativeLaunch = 1;
  properties->canMapHostMemory = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (device != 0) return SetLast(cudaErrorInvalidDevice);
  const Options& options = State().options;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = kThreadsMax;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = kSharedDefault;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(options.shared_bytes_max);
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = SharedOfMultiprocessor(options);
      break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      *value = kReservedShared;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = options.multiprocessors;
      break;
    case cudaDevAttrL2CacheSize:
      *value = static_cast<int>(options.l2_bytes);
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = options.compute_capability / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = options.compute_capability % 10;
      break;
    case cudaDevAttrIntegrated:
      *value = 0;
      break;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
      *value = 1;
      break;
    default:
      return SetLast(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  return State().streams.DrainAll();
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) > State().options.shared_bytes_max) {
    return SetLast(cudaErrorInvalidValue);
  }
  State().kernels.Find(kernel).dynamic_bytes_max = static_cast<std::size_t>(value);
  return cudaSuccess;
}

// What the emulated device cannot know reads 0.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  *attributes = {};
  attributes->maxThreadsPerBlock = kThreadsMax;
  const Options& options = State().options;
  attributes->binaryVersion = options.compute_capability;
  attributes->ptxVersion = emulated_cuda::CodeCapability();
  attributes->maxDynamicSharedSizeBytes =
      static_cast<int>(State().kernels.Find(kernel).dynamic_bytes_max);
  return cudaSuccess;
}

// One: a cooperative launch may have as many blocks as there are multiprocessors.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int block_size,
                                                          std::size_t shared_bytes) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (block_size < 1) return SetLast(cudaErrorInvalidValue);
  const bool fits = static_cast<std::size_t>(block_size) <= kThreadsMax &&
                    shared_bytes <= State().kernels.Find(kernel).dynamic_bytes_max;
  *blocks = fits ? 1 : 0;
  return cudaSuccess;
}

// NOLINTEND
}

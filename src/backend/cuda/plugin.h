#pragma once

// The boundary between the server and libsimile_cuda.so. The head of the table is plain C data, so
// that a plug-in of another build can be recognised and refused before anything else of it is
// trusted; what follows speaks in the server's own types, which the same build id makes safe.

#include <cstdint>
#include <memory>

#include <absl/status/statusor.h>

#include "backend/gpu_options.h"
#include "simile/backend.h"

#define SIMILE_CUDA_PLUGIN_ENTRY "simile_cuda_plugin"

namespace simile::backend {

// The type url under which a plug-in's Status carries its cudaError_t, as decimal text.
inline constexpr char kCudaErrorPayload[] = "simile/cuda_error";

}  // namespace simile::backend

extern "C" {

// Grows whenever a struct below changes.
enum : std::uint32_t { SIMILE_CUDA_INTERFACE_VERSION = 2 };

enum : std::uint32_t { SIMILE_CUDA_DEVICES_MAX = 16, SIMILE_CUDA_NAME_BYTES = 256 };

struct SimileCudaDevice {
  char name[SIMILE_CUDA_NAME_BYTES];  // "NVIDIA H200", ends with 0
  std::uint64_t memory_bytes;
  std::int32_t compute_major;
  std::int32_t compute_minor;
};

struct SimileCudaProbe {
  std::int32_t error;                       // cudaError_t; 0 when the devices could be listed
  char error_name[SIMILE_CUDA_NAME_BYTES];  // "cudaErrorNoDevice", empty without an error
  char error_text[SIMILE_CUDA_NAME_BYTES];  // the runtime's own words
  std::int32_t driver_version;              // 12080 is CUDA 12.8; 0 without a driver
  std::int32_t runtime_version;             // what the plug-in was built with
  std::uint32_t device_count;               // entries of devices that are filled
  SimileCudaDevice devices[SIMILE_CUDA_DEVICES_MAX];
};

struct SimileCudaPlugin {
  std::uint32_t interface_version;  // SIMILE_CUDA_INTERFACE_VERSION of its build; first for ever
  const char* build_id;             // kBuildId of its build; second for ever
  // Looks for devices without creating a context. Fills the whole struct; never throws.
  void (*probe)(SimileCudaProbe* probe);
  // Opens a device and takes its workspace. Never throws. Errors, each in words for a receipt:
  //   kFailedPrecondition  cuBLAS cannot be loaded, or there is no code for the card
  //   kResourceExhausted   not even the smallest workspace fits, with the bytes needed and free
  //   kUnavailable, kInternal  a call failed, with or without the loss of the device
  void (*open)(const simile::backend::GpuOptions* options,
               absl::StatusOr<std::unique_ptr<simile::Backend>>* backend);
};

// The one symbol a plug-in exports, named SIMILE_CUDA_PLUGIN_ENTRY. The struct lives as long as the
// plug-in is loaded, which is until the process ends.
using SimileCudaPluginEntry = const SimileCudaPlugin* (*)();

}  // extern "C"

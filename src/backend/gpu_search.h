#pragma once

#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "backend/accelerator_kinds.h"
#include "backend/accelerator_plugin.h"
#include "backend/gpu_options.h"
#include "simile/backend.h"

namespace simile::backend {

// Where to look for a GPU of one kind. Tests name their own libraries.
struct GpuSearch {
  std::string driver_library;             // as for dlopen
  std::vector<std::string> plugin_paths;  // files, tried in order
  AcceleratorKind kind = AcceleratorKinds().front();
};

// For each accelerator kind, the system's driver and the plug-in beside the executable or in
// ../lib/simile from there.
std::vector<GpuSearch> DefaultGpuSearches();

struct OpenedGpu {
  std::unique_ptr<Backend> backend;
  std::string description;  // "NVIDIA H200 (139 GiB), CUDA 13.0"
  std::string bus_id;       // "0000:3b:00.0"
};

// Opens the GPU: loads the driver (gpu_plugin.h), then the three steps below. Never unloads what
// it has loaded.
// Errors: the first step that fails, as a receipt gives it for answers of the CPU.
absl::StatusOr<OpenedGpu> OpenGpu(const GpuSearch& search, const GpuOptions& options);

// Loads the first plug-in file that exists.
// Errors: kFailedPrecondition for none; those of LoadGpuPlugin.
absl::StatusOr<const SimilePlugin*> FindGpuPlugin(const GpuSearch& search);

// What a plug-in sees of the machine, and the configured device there.
struct FoundDevice {
  SimileDevice device;
  std::string driver;  // "CUDA 13.0"
};
// Errors: kFailedPrecondition with the vendor's code (kDeviceErrorPayload) when devices cannot be
// listed; kNotFound when none has this number.
absl::StatusOr<FoundDevice> FindDevice(const SimilePlugin& plugin, int number,
                                       const AcceleratorKind& kind);

// Errors: those of SimilePlugin::open, with the device's name and the vendor's code.
absl::StatusOr<OpenedGpu> OpenDevice(const SimilePlugin& plugin, const FoundDevice& found,
                                     const GpuOptions& options);

}  // namespace simile::backend

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "backend/accelerator_kinds.h"
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
};

// Opens the GPU: loads the driver, then the plug-in, then opens the device. Never unloads what it
// has loaded.
// Errors: the first step that fails, as a receipt gives it for answers of the CPU.
absl::StatusOr<OpenedGpu> OpenGpu(const GpuSearch& search, const GpuOptions& options);

}  // namespace simile::backend

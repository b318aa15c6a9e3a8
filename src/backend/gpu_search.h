#pragma once

#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "backend/gpu_options.h"
#include "simile/backend.h"

namespace simile::backend {

// Where a GPU is looked for. Tests name libraries of their own.
struct GpuSearch {
  std::string driver_library;             // as for dlopen
  std::vector<std::string> plugin_paths;  // files, tried in order
};

// The system's driver, and the plug-in beside the executable or in ../lib/simile from there.
GpuSearch DefaultGpuSearch();

struct OpenedGpu {
  std::unique_ptr<Backend> backend;
  std::string description;  // "NVIDIA H200 (139 GiB), CUDA 13.0"
};

// Opens the GPU, from the driver's library over the plug-in to the device. Loads libraries and
// never unloads them.
// Errors: the first step that fails, in words for a receipt: why queries are answered on the CPU.
absl::StatusOr<OpenedGpu> OpenGpu(const GpuSearch& search, const GpuOptions& options);

}  // namespace simile::backend

#pragma once

#include <memory>

#include <absl/status/statusor.h>

#include "backend/gpu_options.h"
#include "simile/backend.h"

namespace simile::backend::cuda {

// The GPU engine (docs/design/gpu-engine.md): certified answers from fp16 rows in device memory,
// the same bits as the CPU's. Errors as SimilePlugin::open.
absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend(const GpuOptions& options);

}  // namespace simile::backend::cuda

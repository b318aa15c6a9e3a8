#include "backend/cuda/plugin.h"

#include <exception>

#include <fmt/format.h>

#include "backend/build_id.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/device_probe.h"

namespace {

// Nothing may leave a plug-in by exception: the table of functions is plain C.
void Probe(SimileCudaProbe* probe) noexcept { simile::backend::cuda::ProbeDevices(*probe); }

void Open(const simile::backend::GpuOptions* options,
          absl::StatusOr<std::unique_ptr<simile::Backend>>* backend) noexcept {
  try {
    *backend = simile::backend::cuda::OpenCudaBackend(*options);
  } catch (const std::exception& error) {
    *backend = absl::InternalError(fmt::format("the GPU cannot be opened: {}", error.what()));
  }
}

constexpr SimileCudaPlugin kPlugin{SIMILE_CUDA_INTERFACE_VERSION, simile::backend::kBuildId, &Probe,
                                   &Open};

}  // namespace

extern "C" __attribute__((visibility("default"))) const SimileCudaPlugin* simile_cuda_plugin();

extern "C" const SimileCudaPlugin* simile_cuda_plugin() { return &kPlugin; }

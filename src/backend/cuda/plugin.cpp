#include <cuda_runtime_api.h>

#include <exception>

#include <fmt/format.h>

#include "backend/accelerator_plugin.h"
#include "backend/build_id.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/device.h"

namespace {

// The table is plain C: no exception may leave the plug-in.
void Probe(SimileDeviceProbe* probe) noexcept { simile::backend::cuda::ProbeDevices(*probe); }

void Open(const simile::backend::GpuOptions* options,
          absl::StatusOr<std::unique_ptr<simile::Backend>>* backend) noexcept {
  try {
    *backend = simile::backend::cuda::OpenCudaBackend(*options);
  } catch (const std::exception& error) {
    *backend = absl::InternalError(fmt::format("the GPU cannot be opened: {}", error.what()));
  }
}

// "CUDA 12.9"
constexpr char kToolkit[] = {'C',
                             'U',
                             'D',
                             'A',
                             ' ',
                             '0' + CUDART_VERSION / 10'000,
                             '0' + CUDART_VERSION / 1'000 % 10,
                             '.',
                             '0' + CUDART_VERSION % 1'000 / 10,
                             '\0'};
static_assert(CUDART_VERSION % 1'000 / 10 < 10, "the minor version has one digit");

constexpr SimilePlugin kPlugin{SIMILE_PLUGIN_INTERFACE_VERSION, simile::backend::kBuildId, &Probe,
                               &Open, kToolkit};

}  // namespace

extern "C" __attribute__((visibility("default"))) const SimilePlugin* simile_cuda_plugin();

extern "C" const SimilePlugin* simile_cuda_plugin() { return &kPlugin; }

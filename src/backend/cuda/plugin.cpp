#include "backend/cuda/plugin.h"

#include "backend/build_id.h"
#include "backend/cuda/device_probe.h"

namespace {

// Nothing may leave a plug-in by exception: the server's side of the boundary is plain C.
void Probe(SimileCudaProbe* probe) noexcept { simile::backend::cuda::ProbeDevices(*probe); }

constexpr SimileCudaPlugin kPlugin{SIMILE_CUDA_INTERFACE_VERSION, simile::backend::kBuildId,
                                   &Probe};

}  // namespace

extern "C" __attribute__((visibility("default"))) const SimileCudaPlugin* simile_cuda_plugin();

extern "C" const SimileCudaPlugin* simile_cuda_plugin() { return &kPlugin; }

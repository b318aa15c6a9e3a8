// Plug-ins that report what they are told to, compiled once for each FAKE_PLUGIN below.
#include <cstdio>

#include "backend/build_id.h"
#include "backend/cuda/plugin.h"

#define FAKE_ONE_DEVICE 1
#define FAKE_TWO_DEVICES 2
#define FAKE_OTHER_BUILD 3
#define FAKE_OTHER_INTERFACE 4

namespace {

void AddDevice(SimileCudaProbe& probe, const char* name, std::uint64_t gib) {
  SimileCudaDevice& device = probe.devices[probe.device_count++];
  std::snprintf(device.name, sizeof(device.name), "%s", name);
  device.memory_bytes = gib << 30;
  device.compute_major = 9;
}

void Probe(SimileCudaProbe* probe) {
  *probe = SimileCudaProbe{};
  AddDevice(*probe, "NVIDIA H200", 139);
  if (FAKE_PLUGIN == FAKE_TWO_DEVICES) AddDevice(*probe, "NVIDIA T4", 16);
}

constexpr SimileCudaPlugin kPlugin{
    FAKE_PLUGIN == FAKE_OTHER_INTERFACE ? 99U : SIMILE_CUDA_INTERFACE_VERSION,
    FAKE_PLUGIN == FAKE_OTHER_BUILD ? "0.0.1-of-yesterday" : simile::backend::kBuildId, &Probe};

}  // namespace

extern "C" const SimileCudaPlugin* simile_cuda_plugin();

extern "C" const SimileCudaPlugin* simile_cuda_plugin() { return &kPlugin; }

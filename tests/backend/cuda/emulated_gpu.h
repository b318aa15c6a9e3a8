#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <absl/status/statusor.h>

#include "backend/cuda/forced_road.h"
#include "backend/gpu_options.h"
#include "simile/backend.h"

namespace simile::testing {

// The GPU engine's own code on the emulated device (tests/emulated_cuda).

// A card that the engine has code for: its shared memory decides how the fused scan is laid out.
struct EmulatedCard {
  const char* name;
  int capability;
  std::size_t shared_bytes_max;
  int multiprocessors;
};
// H200, A100, A5000, T4, as far as kernels can tell.
const EmulatedCard& CardOf(std::size_t index);
std::size_t CardCount();

// A fresh device like this one. Everything of an earlier device is gone.
void ResetEmulatedGpu(const EmulatedCard& card, std::uint64_t seed,
                      std::size_t memory_bytes = std::size_t{256} << 20);

// Options that suit it: a small workspace, so that batches are split and tiles end in their midst.
backend::GpuOptions EmulatedOptions(ForcedRoad road = ForcedRoad::kNone);

// Opens the plug-in that is built from the engine's sources for the emulated device, through its
// one entry point.
absl::StatusOr<std::unique_ptr<Backend>> OpenEmulatedGpu(const backend::GpuOptions& options);

}  // namespace simile::testing

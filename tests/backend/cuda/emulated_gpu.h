#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <absl/status/statusor.h>

#include "backend/cuda/forced_strategy.h"
#include "backend/gpu_options.h"
#include "simile/backend.h"

namespace simile::tests {

// The GPU engine's own code on the emulated device (tests/emulated_cuda).

// A card that the engine has code for: its shared memory decides the layout of the fused scan.
struct EmulatedCard {
  const char* name;
  int capability;
  std::size_t shared_bytes_max;
  int multiprocessors;
};
// H200, A100, A5000, T4: the properties that kernels depend on.
const EmulatedCard& CardOf(std::size_t index);
std::size_t CardCount();

// A card of each compute capability that a plug-in has code for, with the shared memory that its
// blocks may have (the table of capabilities in the CUDA C++ Programming Guide).
std::span<const EmulatedCard> CardsByCapability();

// Replaces the emulated device by a new one with this card's properties.
void ResetEmulatedGpu(const EmulatedCard& card, std::uint64_t seed,
                      std::size_t memory_bytes = std::size_t{256} << 20);

// Options for the emulated device: a small workspace, so that batches are split and small segments
// take several tiles.
backend::GpuOptions EmulatedOptions(ForcedStrategy strategy = ForcedStrategy::kNone);

// Opens the plug-in built from the engine's sources for the emulated device, through its entry
// point.
absl::StatusOr<std::unique_ptr<Backend>> OpenEmulatedGpu(const backend::GpuOptions& options);

}  // namespace simile::tests

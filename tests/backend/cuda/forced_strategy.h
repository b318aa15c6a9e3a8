#pragma once

#include <cstdint>

#include "backend/gpu_options.h"

namespace simile::tests {

// The strategy of the GPU engine that every query uses, as far as possible.
enum class ForcedStrategy : std::uint8_t { kNone, kRowScan, kGemm, kGather, kCanonical };

// Sets the tuning that selects the strategy. kRowScan also sets tile_bytes to 0, so that GEMM
// cannot be planned, and exchanges queries and short answers through mapped memory.
void Force(ForcedStrategy strategy, backend::GpuOptions& options);

// A workspace so small that batches are split and small segments take several tiles.
backend::WorkspaceSize SmallWorkspace();

}  // namespace simile::tests

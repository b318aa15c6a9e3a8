#pragma once

#include <cstdint>

#include "backend/gpu_options.h"

namespace simile::tests {

// The strategy of the GPU engine that every query uses, as far as possible.
enum class ForcedStrategy : std::uint8_t { kNone, kInt8Scan, kRowScan, kGemm, kGather, kCanonical };

// Sets what selects the strategy. The scans also set tile_bytes to 0, so that GEMM cannot be
// planned, and exchange queries and short answers through mapped memory. kRowScan keeps no int8
// rows.
void Force(ForcedStrategy strategy, backend::GpuOptions& options);

// A workspace so small that batches are split and small segments take several tiles.
backend::WorkspaceSize SmallWorkspace();

}  // namespace simile::tests

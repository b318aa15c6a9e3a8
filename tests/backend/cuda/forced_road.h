#pragma once

#include <cstdint>

#include "backend/gpu_options.h"

namespace simile::testing {

// Which road of the GPU engine every query is sent down, as far as it can be.
enum class ForcedRoad : std::uint8_t { kNone, kRowScan, kGemm, kGather, kCanonical };

// Sets what decides about roads. The scan's own takes GEMM away, whatever else the options say.
void Force(ForcedRoad road, backend::GpuOptions& options);

// A workspace so small that batches are split and tiles end in the midst of small segments.
backend::WorkspaceSize SmallWorkspace();

}  // namespace simile::testing

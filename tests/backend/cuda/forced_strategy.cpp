#include "backend/cuda/forced_strategy.h"

#include <limits>

namespace simile::tests {

void Force(ForcedStrategy strategy, backend::GpuOptions& options) {
  constexpr unsigned kAll = std::numeric_limits<unsigned>::max();
  switch (strategy) {
    case ForcedStrategy::kNone:
      return;
    case ForcedStrategy::kInt8Scan:
    case ForcedStrategy::kRowScan:
      options.tuning = {.canonical_rows_max = 0,
                        .scan_queries_max = 64,
                        .gather_share = kAll,
                        .mapped_queries_max = 64};
      options.workspace.tile_bytes = 0;  // no tile fits: no plan for GEMM
      options.int8_rows = strategy == ForcedStrategy::kInt8Scan;
      return;
    case ForcedStrategy::kGemm:
      options.tuning = {.canonical_rows_max = 0, .scan_queries_max = 0, .gather_share = kAll};
      return;
    case ForcedStrategy::kGather:
      options.tuning = {.canonical_rows_max = 0, .scan_queries_max = 64, .gather_share = 1};
      return;
    case ForcedStrategy::kCanonical:
      options.tuning = {.canonical_rows_max = kAll, .scan_queries_max = 64, .gather_share = kAll};
      return;
  }
}

backend::WorkspaceSize SmallWorkspace() {
  return {.queries_max = 96,
          .stride_max = 4'096,
          .hits_max = 1U << 18,
          .answers_max = 1U << 16,
          .excluded_max = 1U << 14,
          .tile_bytes = std::size_t{48} << 10,
          .blas_bytes = std::size_t{64} << 10};
}

}  // namespace simile::tests

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simile/clock.h"

namespace simile::backend {

// What a GPU's workspace holds room for. It does not depend on the collections: all share it.
struct WorkspaceSize {
  unsigned queries_max = 1'024;         // of a pass
  unsigned stride_max = 4'096;          // padded dimensions
  std::size_t hits_max = 8U << 20;      // candidates of a pass, over all its queries
  std::size_t answers_max = 2U << 20;   // hits that come back from a pass
  std::size_t excluded_max = 1U << 20;  // rows left out by the queries of a pass
  std::size_t tile_bytes = 17U << 20;   // of scores; there are two
  std::size_t blas_bytes = 32U << 20;   // cuBLAS's own, for each of two streams
};

// Where the GPU changes from one road to another. Answers do not depend on it.
struct GpuTuning {
  // Up to so many rows are answered from canonical scores at once.
  unsigned canonical_rows_max = 4'096;
  // Up to so many queries are the fused scan's, more are multiplied by cuBLAS.
  unsigned scan_queries_max = 64;
  // A filter that lets at most one row in so many pass becomes a list of rows.
  unsigned gather_share = 32;
};

// What the GPU backend is opened with: the `gpu.*` settings, and what tests inject.
struct GpuOptions {
  int device = 0;  // as CUDA numbers them
  // Of the device's memory all collections together may take this share, less the reserve.
  double memory_fraction = 0.8;
  std::uint64_t reserve_bytes = std::uint64_t{1} << 30;
  // A batch that the device has not finished after this long counts as hung.
  std::chrono::milliseconds batch_timeout{2'000};
  // Where cuBLAS is looked for, in order, as for dlopen. Empty: the toolkit's own name for it.
  std::vector<std::string> blas_libraries;
  WorkspaceSize workspace;
  GpuTuning tuning;
  // Tells how long a batch has taken; outlives the backend.
  const Clock* clock = nullptr;
};

}  // namespace simile::backend

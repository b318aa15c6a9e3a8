#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simile/clock.h"

namespace simile::backend {

// Sizes of a GPU's workspace, which all collections share. By arithmetic; no other sizes were
// measured.
struct WorkspaceSize {
  unsigned queries_max = 1'024;         // of a pass
  unsigned stride_max = 4'096;          // padded dimensions
  std::size_t hits_max = 8U << 20;      // of a pass, over all its queries
  std::size_t answers_max = 2U << 20;   // hits that a pass returns
  std::size_t excluded_max = 1U << 20;  // rows excluded by the queries of a pass
  // Scores of one tile, at most; there are two tiles. Plans mostly take less, which fits the L2
  // (pass_plan.cpp). 0: without matrix products.
  std::size_t tile_bytes = 17U << 20;
  std::size_t blas_bytes = 32U << 20;  // workspace of the BLAS library, for each of two streams
};

// When the GPU changes its strategy; no answer depends on it. Each is what was fastest on an H200
// (docs/benchmarks/gpu.md), or near it for all shapes.
struct GpuTuning {
  // Segments up to this size are answered by canonical scores alone: of so many rows one step
  // computes them all (pass_runner.cpp).
  unsigned canonical_rows_max = 1'024;
  // Up to this many queries use the fused scan, more use matrix products.
  unsigned scan_queries_max = 64;
  // One row in this many sets a second gate for the rest of a fused scan, where that saves enough
  // hits. 0: never.
  unsigned second_gate_share = 8;
  // A filter that at most one row in this many passes becomes a list of rows. They cross between
  // one in 8 and one in 128, by rows and queries.
  unsigned gather_share = 32;
  // Scans of up to this many queries exchange them and their answers through host memory that
  // kernels read and write, larger ones through copies. 0: always copies. On an H200 this takes 7
  // to 23 us less than copies at each of 1 to 64 queries.
  unsigned mapped_queries_max = 64;
};

// What the GPU backend is opened with: the `gpu.*` settings, and what tests inject.
struct GpuOptions {
  int device = 0;  // as the driver numbers them
  // The share of the device's memory that all collections may take together, less the reserve.
  double memory_fraction = 0.8;
  std::uint64_t reserve_bytes = std::uint64_t{1} << 30;
  // Whether collections are kept as int8 rows too where the card multiplies them and all fits.
  bool int8_rows = true;
  // A batch that the device has not finished after this long fails. When the next one is not
  // finished in time either, the device counts as hung.
  std::chrono::milliseconds batch_timeout{2'000};
  // Names of the vendor's BLAS library as for dlopen, tried in order. Empty: the toolkit's default.
  std::vector<std::string> blas_libraries;
  WorkspaceSize workspace;
  GpuTuning tuning;
  // Times batches; outlives the backend.
  const Clock* clock = nullptr;
};

}  // namespace simile::backend

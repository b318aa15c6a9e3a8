#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/gpu_choices.h"
#include "simile/clock.h"

namespace simile::backend {

// Sizes of a GPU's workspace, which all collections share. They are calculated; other sizes were
// not measured.
struct WorkspaceSize {
  unsigned queries_max = 1'024;         // of a pass
  unsigned stride_max = 4'096;          // padded dimensions
  std::size_t hits_max = 8U << 20;      // of a pass, over all its queries
  std::size_t answers_max = 2U << 20;   // hits that a pass returns
  std::size_t excluded_max = 1U << 20;  // rows excluded by the queries of a pass
  // The most bytes of scores of one tile; there are two tiles. Plans usually take less, which fits
  // the L2 (pass_plan.cpp). 0: no matrix products.
  std::size_t tile_bytes = 17U << 20;
  std::size_t blas_bytes = 32U << 20;  // workspace of the BLAS library, for each of two streams
};

// When the GPU changes its strategy; no answer depends on it. Each value was the fastest on an
// H200, or close to the fastest for every shape (docs/benchmarks/gpu.md).
struct GpuTuning {
  // Segments up to this size are answered by canonical scores alone. On an H200 a pass over 2,048
  // rows takes less time, and over 1,024 rows about as long.
  unsigned canonical_rows_max = 1'024;
  // Batches of up to this many queries use the fused scan; larger batches use matrix products.
  unsigned scan_queries_max = 64;
  // One row in this many sets a second gate for the rest of a fused scan, if that saves enough
  // hits. 0: never.
  unsigned second_gate_share = 8;
  // A filter that at most one row in this many passes becomes a list of rows. On an H200 lists and
  // masks take equal time between one row in 8 and one in 128.
  unsigned gather_share = 32;
  // Scans of up to this many queries exchange queries and answers through host memory that kernels
  // read and write; larger scans use copies. 0: always copies. On an H200 host memory saves 7 to 20
  // us a scan from 1 to 64 queries.
  unsigned mapped_queries_max = 64;
  // A pass with space for at least this many hits lends its answers in pinned memory, and so does a
  // started search. Other answers are copied. Estimated: to copy 128 KiB takes 10 us.
  std::size_t lent_hits_min = 16'384;
  // The rows of a tile of scores, a multiple of 128, if the workspace holds them. 0: chosen by the
  // card.
  unsigned tile_rows = 0;
};

// The options of the GPU backend: the `gpu.*` settings, and the objects that tests inject.
struct GpuOptions {
  int device = 0;  // as the driver numbers them
  // The share of the device's memory that all collections may take together, less the reserve.
  double memory_fraction = 0.8;
  std::uint64_t reserve_bytes = std::uint64_t{1} << 30;
  // Whether collections are also kept as int8 rows, if the card multiplies int8 and everything
  // fits.
  bool int8_rows = true;
  // A batch that the device has not finished after this time fails. When the next batch is not
  // finished in time either, the device counts as hung.
  std::chrono::milliseconds batch_timeout{2'000};
  // Names of the vendor's BLAS library as for dlopen, tried in order. Empty: the toolkit's default.
  std::vector<std::string> blas_libraries;
  WorkspaceSize workspace;
  GpuTuning tuning;
  // How long a load may time passes to find the fastest for its collection; a run under way is
  // still completed. 0: nothing is timed.
  std::chrono::milliseconds choice_time{0};
  // Keeps the measurements of loads; outlives the backend. Null: every load measures.
  GpuChoiceStore* choice_store = nullptr;
  // Times batches; outlives the backend, and results that hold answers of it.
  const Clock* clock = nullptr;
};

}  // namespace simile::backend

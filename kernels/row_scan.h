#pragma once

#include <cstddef>

#include "kernels/pass.h"

// row_scan: the fused pass for small batches. One read of the rows serves up to 64 queries, and one
// cooperative launch does everything: the first 32 * sample_groups rows give each query its gate,
// then all rows are scored with accumulators that start at minus the gate (a hit is a clear sign
// bit), then one block a query finishes (finish.cuh).
//   in   halves  [row_count][stride]  fp16, shuffled, at most unit length
//   out  as finish.h; without `finishes` pass.hits, hit_counts and gates, for LaunchFinishInSteps
// Work    a warp owns tiles of 32 rows, a ring of stages that cp.async fills, and its accumulators:
//         the main loop has no block barrier. Rows are the N operand of the products (8), queries
//         the M operand (16), so that 16 bytes of a row are two fragments in place.
// Bound   memory: row_count * stride * 2 bytes read once, and the sample once more.
// Launch  one block a multiprocessor, all resident at once.

namespace simile::kernels {

inline constexpr unsigned kScanQueriesMax = 64;
inline constexpr unsigned kScanTileRows = 32;    // rows a warp scores at once, and a sample's group
inline constexpr unsigned kScanGroupsMax = 512;  // of a sample

// Where the blocks of a launch wait for each other. Zeroed once; one launch at a time.
struct GridRounds {
  unsigned arrived;
  unsigned number;
};

struct RowScanArguments {
  const __half* halves;
  unsigned sample_groups;  // 1 .. kScanGroupsMax, at most as many as there are tiles
  float margin;            // the gate lies this far below the sample's: twice the bound
  float* maxima;           // [batch][sample_groups] scratch
  GridRounds* rounds;      // of the blocks' barriers
  bool finishes;
};

// How a card with so much shared memory holds the queries and the rows on their way.
struct RowScanShape {
  unsigned queries = 0;  // 16, 32 or 64 at once; 0: not even 16 fit
  unsigned stages = 0;   // of a warp's ring; 1: rows go straight to registers
  unsigned warps = 0;
  std::size_t shared_bytes = 0;
};

//   batch             1 .. kScanQueriesMax
//   shared_bytes_max  of a block
//   asynchronous      whether the card copies in the background (sm_80 and later)
RowScanShape ShapeRowScan(unsigned stride, unsigned batch, std::size_t shared_bytes_max,
                          bool asynchronous);

// Allows the shape's kernel all the shared memory that a block may have; before its launches. Not
// to be captured.
cudaError_t PrepareRowScan(const RowScanShape& shape, std::size_t shared_bytes_max);

// REQUIRES: blocks that are resident at once (one a multiprocessor); pass.batch <= shape.queries.
cudaError_t LaunchRowScan(const RowScanShape& shape, unsigned blocks, const Pass& pass,
                          const RowScanArguments& arguments, cudaStream_t stream);

}  // namespace simile::kernels

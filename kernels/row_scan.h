#pragma once

#include <cstddef>

#include "kernels/int8_rows.h"
#include "kernels/pass.h"

// row_scan: the fused pass for small batches. One read of the rows serves up to 64 queries, and
// one cooperative launch finds the hits: the first 32 * sample_groups rows give each query its
// gate, then all rows are scored with accumulators that start at minus the gate, so a hit has a
// clear sign bit.
//   in   fp16_rows  [row_count][stride]  shuffled, at most unit length
//   out  pass.hits, hit_counts and gates, for answers.h
// Work    a warp owns tiles of 32 rows, its accumulators and, in the ring variant, a ring of stages
//         that cp.async fills: the main loop has no block barrier. Rows are the N operand of the
//         products (8), queries the M operand (16), so 16 bytes of a row are two fragments.
// Bound   memory: row_count * stride * 2 bytes read once, and the sample once more.
// Launch  one block per multiprocessor, all resident at once.

namespace simile::kernels {

inline constexpr unsigned kScanQueriesMax = 64;
inline constexpr unsigned kScanTileRows = 32;    // rows a warp scores at once, and a sample's group
inline constexpr unsigned kScanGroupsMax = 512;  // groups of a sample

// Barrier over all blocks of a launch. Zeroed once; one launch at a time.
struct GridRounds {
  unsigned arrived;
  unsigned number;
};

struct RowScanArguments {
  const __half* fp16_rows;
  unsigned sample_groups;  // 1 .. kScanGroupsMax, at most as many as there are tiles
  float margin;   // the gate is the sample's score minus this: twice pass.bound, so 0 for int8
  float* maxima;  // [batch][sample_groups] scratch
  unsigned second_tiles;  // the first tiles, which set a second gate; 0: one gate
  float* second_maxima;   // [batch][kScanGroupsMax] scratch
  GridRounds* rounds;
  Int8Rows int8 = {};  // for int8_scan alone
};

// How rows and scores are handled.
enum class ScanForm : unsigned char {
  kPlain,
  kKept,  // keeps all scores in registers: every row is in the sample and none is read twice
};

// The layout of a block's shared memory: queries, then rows in transit.
struct RowScanShape {
  unsigned queries = 0;  // per pass: 8 (int8 only), 16, 32 or 64; 0: none fits
  unsigned stages = 0;   // of a warp's ring; 1: rows are loaded into registers directly
  unsigned warps = 0;
  std::size_t shared_bytes = 0;
  ScanForm form = ScanForm::kPlain;
};
inline constexpr unsigned kTilesKept = 2;  // of a warp, in the form kKept

// The shapes of the fp16 scans for a batch; queries is 0 when none fits.
//   form              kept scores are for up to 32 queries, registers are kPlain
//   shared_bytes_max  per block
// Rings are copied in the background (cp.async, sm_80 and later): as many warps as fit, then as
// many stages. Without a ring every lane loads its rows one stage ahead into registers.
RowScanShape ShapeRingScan(ScanForm form, unsigned stride, unsigned batch,
                           std::size_t shared_bytes_max);
RowScanShape ShapeRegisterScan(ScanForm form, unsigned stride, unsigned batch,
                               std::size_t shared_bytes_max);

// The architecture of the PTX from which the card's code of the scan was made: 75 when code for
// sm_75 runs on a later card. Such code lacks the features of later architectures. After an error
// the number is unchanged.
cudaError_t ArchitectureOfRowScan(int& architecture);

// Allows the shape's kernel all the shared memory that a block may have; called before its launches
// and not while a graph is captured.
cudaError_t PrepareRowScan(const RowScanShape& shape, std::size_t shared_bytes_max);

// REQUIRES: `blocks` fit on the card at once (one per multiprocessor); pass.batch <= shape.queries.
cudaError_t LaunchRowScan(const RowScanShape& shape, unsigned blocks, const Pass& pass,
                          const RowScanArguments& arguments, cudaStream_t stream);

// int8_scan: row_scan with rows of a byte a dimension, half the bytes of fp16, for cards from sm_80
// on. Sums of products of codes are exact. The error of rounding to codes is bounded for each row
// (int8_gate.cuh). A hit is a row whose score can reach the gate.
//   in   arguments.int8; the other arguments as row_scan, except fp16_rows and margin
//   out  as row_scan
// Work    two launches: the queries to two planes of codes (convert_to_int8), then the scan. The
//         high plane of query g is in fragment row g, the low plane in g + 8, so that one lane
//         holds both sums of a score. So 8 queries take 16 rows of the products.
// Bound   memory: row_count * (int8.stride + 8) bytes read once, and the sample once more.
// Launch  one block per multiprocessor, all resident at once.

// As ShapeRingScan; shape.queries is 8, 16, 32 or 64.
RowScanShape ShapeInt8Scan(ScanForm form, unsigned stride, unsigned batch,
                           std::size_t shared_bytes_max);
cudaError_t PrepareInt8Scan(const RowScanShape& shape, std::size_t shared_bytes_max);
// REQUIRES: as LaunchRowScan.
cudaError_t LaunchInt8Scan(const RowScanShape& shape, unsigned blocks, const Pass& pass,
                           const RowScanArguments& arguments, cudaStream_t stream);

}  // namespace simile::kernels

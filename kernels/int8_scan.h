#pragma once

#include "kernels/row_scan.h"

// int8_scan: row_scan with rows of a byte a dimension, half the bytes of fp16, for cards from sm_80
// on. Sums of products of codes are exact; what rounding to codes loses is bounded for each row
// (int8_gate.cuh), and a hit is a row whose score can reach the gate.
//   in   arguments.int8; the other arguments as row_scan, but for fp16_rows and margin
//   out  as finish.h
// Work    two launches: the queries to two planes of codes (convert_to_int8), then the scan. The
//         high plane of query g lies in fragment row g, the low one in g + 8, so that one lane
//         holds both sums of a score: 8 queries take 16 rows of the products.
// Bound   memory: row_count * (int8.stride + 8) bytes read once, and the sample once more.
// Launch  one block per multiprocessor, all resident at once.

namespace simile::kernels {

// As ShapeRingScan; shape.queries is 8, 16, 32 or 64.
RowScanShape ShapeInt8Scan(ScanForm form, unsigned stride, unsigned batch,
                           std::size_t shared_bytes_max);
cudaError_t PrepareInt8Scan(const RowScanShape& shape, std::size_t shared_bytes_max);
// REQUIRES: as LaunchRowScan.
cudaError_t LaunchInt8Scan(const RowScanShape& shape, unsigned blocks, const Pass& pass,
                           const RowScanArguments& arguments, cudaStream_t stream);

}  // namespace simile::kernels

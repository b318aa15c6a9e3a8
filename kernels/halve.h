#pragma once

#include "kernels/pass.h"

// halve_rows, halve_queries: fp32 vectors to fp16 ones of at most unit length.

namespace simile::kernels {

// halves[p] = rows[row_of[p]] * unit, rounded to nearest.
//   in   rows              [row_count][stride] fp32, on the device or in mapped host memory
//   out  halves            [row_count][stride]
//   out  residual_squares  the bits of the greatest squared length, in double, of what rounding
//                          took from a row in units; only ever raised, 0 before
// Work    one warp a row. Bound: memory, 6 bytes an element.
struct HalveRowsArguments {
  const float* rows;
  const unsigned* row_of;
  unsigned row_count, stride;
  float unit;  // a power of two
  __half* halves;
  unsigned long long* residual_squares;
};
cudaError_t LaunchHalveRows(const HalveRowsArguments& arguments, cudaStream_t stream);

// halves[q] = pass.queries[q] * unit_of_query, for the GEMM.
//   out  halves  [batch][stride]
cudaError_t LaunchHalveQueries(const Pass& pass, __half* halves, cudaStream_t stream);

}  // namespace simile::kernels

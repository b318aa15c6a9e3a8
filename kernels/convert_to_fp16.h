#pragma once

#include "kernels/pass.h"

// convert_rows_to_fp16, convert_queries_to_fp16: fp32 vectors to fp16 ones of at most unit length.

namespace simile::kernels {

// fp16_rows[p] = rows[row_of[p]] * unit, rounded to nearest.
//   in   rows              [row_count][stride] fp32, on the device or in mapped host memory
//   out  fp16_rows         [row_count][stride]
//   out  residual_squares  the bits of the largest squared length, in double, of a row's rounding
//                          error in units; raised only, 0 before
// Work    one warp per row. Bound: memory, 6 bytes per element.
struct ConvertRowsArguments {
  const float* rows;
  const unsigned* row_of;
  unsigned row_count, stride;
  float unit;  // a power of two
  __half* fp16_rows;
  unsigned long long* residual_squares;
};
cudaError_t LaunchConvertRowsToFp16(const ConvertRowsArguments& arguments, cudaStream_t stream);

// fp16_queries[q] = pass.queries[q] * unit_of_query, for the GEMM.
//   out  fp16_queries  [batch][stride]
cudaError_t LaunchConvertQueriesToFp16(const Pass& pass, __half* fp16_queries, cudaStream_t stream);

}  // namespace simile::kernels

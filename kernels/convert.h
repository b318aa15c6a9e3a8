#pragma once

#include <cuda_runtime_api.h>

#include "kernels/int8_rows.h"
#include "kernels/pass.h"

namespace simile::kernels {

// convert_rows_to_fp16, convert_queries_to_fp16: fp32 vectors to fp16 vectors of at most unit
// length.

// fp16_rows[p] = rows[row_of[p]] * unit, rounded to nearest.
//   in   rows              [row_count][stride] fp32, on the device or in mapped host memory
//   out  fp16_rows         [row_count][stride]
//   out  residual_squares the bits of a double: the greatest squared length of a row's rounding
//                          error, in units. Only raised; the caller sets 0 before
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

// convert_rows_to_int8, convert_queries_to_int8: fp32 vectors, rotated as by certificate::Rotation,
// to codes of a byte.

// Converts rows to shuffled positions. A row's scale is the one with the least error for its codes,
// so the error is perpendicular to the decoded row.
//   in   rows    [*][stride] fp32, on the device or in mapped host memory
//   in   signs   [2][int8_stride] of the rotation
//   out  codes   [row_count][int8_stride]
//   out  terms   [row_count]
//   out  maxima the bits of the greatest |x'| and of the greatest residual, as floats rounded up.
//                Only raised; the caller sets 0 before
// Work    one block per row, the rotated row in shared memory; only loading a segment runs it.
struct ConvertToInt8Arguments {
  const float* rows;
  const unsigned* row_of;
  unsigned row_count, stride;
  float unit;  // a power of two
  const float* signs;
  unsigned int8_stride;
  signed char* codes;
  Int8Row* terms;
  unsigned* maxima;
};
cudaError_t LaunchConvertRowsToInt8(const ConvertToInt8Arguments& arguments, cudaStream_t stream);

// Converts the queries of a pass to two planes, 15 bits together.
//   out  int8.planes, int8.queries
// Work    one block per query.
cudaError_t LaunchConvertQueriesToInt8(const Pass& pass, const Int8Rows& int8, cudaStream_t stream);

}  // namespace simile::kernels

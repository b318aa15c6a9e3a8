#pragma once

#include <cuda_runtime_api.h>

#include "kernels/int8_rows.h"
#include "kernels/pass.h"

// convert_rows_to_int8, convert_queries_to_int8: fp32 vectors, rotated as certificate::Rotation
// does it, to codes of a byte.

namespace simile::kernels {

// Rows at shuffled positions: a row's scale is the one with the least error for its codes, so that
// the error is perpendicular to what the codes give.
//   in   rows    [*][stride] fp32, on the device or in mapped host memory
//   in   signs   [2][int8_stride] of the rotation
//   out  codes   [row_count][int8_stride]
//   out  terms   [row_count]
//   out  maxima  the bits of the greatest |x'| and of the greatest residual, as floats rounded up;
//                raised only, 0 before
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

// The queries of a pass in two planes, 15 bits together.
//   out  int8.planes, int8.queries
// Work    one block per query.
cudaError_t LaunchConvertQueriesToInt8(const Pass& pass, const Int8Rows& int8, cudaStream_t stream);

}  // namespace simile::kernels

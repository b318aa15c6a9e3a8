#pragma once

#include <cuda_runtime_api.h>

// order_mask: converts a mask over rows in the caller's order to one over positions.
//   in   by_row   words of simile::RowMask; row r of the segment is bit first_bit + r
//   in   row_of   [row_count]
//   out  by_position  [ceil(row_count / 32)], bits after the last position clear
// Work    one warp per word. Bound: memory, 4 bytes per row and the mask from L2.

namespace simile::kernels {

struct OrderMaskArguments {
  const unsigned* by_row;
  unsigned first_bit;  // 0 .. 63
  const unsigned* row_of;
  unsigned row_count;
  unsigned* by_position;
};
cudaError_t LaunchOrderMask(const OrderMaskArguments& arguments, cudaStream_t stream);

}  // namespace simile::kernels

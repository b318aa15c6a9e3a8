#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace simile::kernels {

// take_queries: copies a block of queries from host memory that is mapped for the device. For up to
// 64 queries a kernel takes less time than a copy (docs/benchmarks/gpu.md).
//   in   from  [bytes] on the host, pinned and mapped; a multiple of 4
//   out  to    [bytes] on the device
// Work    one thread per 4 bytes, so a warp reads 128 bytes at once. Bound: one round trip on the
//         bus.
struct TakeQueriesArguments {
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};
cudaError_t LaunchTakeQueries(const TakeQueriesArguments& arguments, cudaStream_t stream);

// order_mask: converts a mask over rows in the caller's order to one over positions.
//   in   by_row   words of simile::RowMask; row r of the segment is bit first_bit + r
//   in   row_of   [row_count]
//   out  by_position  [ceil(row_count / 32)], bits after the last position clear
// Work    one warp per word. Bound: memory, 4 bytes per row and the mask from L2.
struct OrderMaskArguments {
  const unsigned* by_row;
  unsigned first_bit;  // 0 .. 63
  const unsigned* row_of;
  unsigned row_count;
  unsigned* by_position;
};
cudaError_t LaunchOrderMask(const OrderMaskArguments& arguments, cudaStream_t stream);

}  // namespace simile::kernels

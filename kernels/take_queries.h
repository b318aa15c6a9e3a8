#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

// take_queries: copies a block of queries from host memory that is mapped for the device. For up to
// 64 queries a kernel takes less time than a copy (docs/benchmarks/gpu.md).
//   in   from  [bytes] on the host, pinned and mapped; a multiple of 4
//   out  to    [bytes] on the device
// Work    one thread per 4 bytes, so a warp reads 128 bytes at once. Bound: one round trip on the
//         bus.

namespace simile::kernels {

struct TakeQueriesArguments {
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};
cudaError_t LaunchTakeQueries(const TakeQueriesArguments& arguments, cudaStream_t stream);

}  // namespace simile::kernels

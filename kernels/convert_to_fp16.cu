#include "kernels/convert.h"

#include <algorithm>

#include "kernels/device.h"

namespace simile::kernels {
namespace {

constexpr unsigned kWarps = 8;
constexpr unsigned kBlocksMax = 65'535;

}  // namespace

__global__ void __launch_bounds__(kWarps * 32)
    ConvertRowsToFp16Kernel(const SIMILE_GRID_CONSTANT ConvertRowsArguments arguments) {
  const unsigned lane = threadIdx.x % 32;
  double greatest = 0;
  for (unsigned position = blockIdx.x * kWarps + threadIdx.x / 32; position < arguments.row_count;
       position += gridDim.x * kWarps) {
    const std::size_t from =
        static_cast<std::size_t>(arguments.row_of[position]) * arguments.stride;
    const std::size_t to = static_cast<std::size_t>(position) * arguments.stride;
    double squares = 0;
    for (unsigned i = lane; i < arguments.stride; i += 32) {
      const float value = arguments.rows[from + i];
      const __half half = __float2half_rn(value * arguments.unit);
      arguments.fp16_rows[to + i] = half;
      const double lost = static_cast<double>(value) * static_cast<double>(arguments.unit) -
                          static_cast<double>(__half2float(half));
      squares += lost * lost;
    }
#pragma unroll
    for (int step = 16; step != 0; step /= 2) squares += __shfl_xor_sync(~0U, squares, step);
    greatest = squares > greatest ? squares : greatest;
  }
  // Non-negative doubles compare as their bits do.
  if (lane == 0) atomicMax(arguments.residual_squares, Bits<unsigned long long>(greatest));
}

__global__ void __launch_bounds__(kWarps * 32)
    ConvertQueriesToFp16Kernel(const SIMILE_GRID_CONSTANT Pass pass, __half* fp16_queries) {
  const unsigned query = blockIdx.x;
  const std::size_t first = static_cast<std::size_t>(query) * pass.stride;
  const float unit = pass.terms[query].unit_of_query;
  for (unsigned i = threadIdx.x; i < pass.stride; i += blockDim.x) {
    fp16_queries[first + i] = __float2half_rn(pass.queries[first + i] * unit);
  }
}

cudaError_t LaunchConvertRowsToFp16(const ConvertRowsArguments& arguments, cudaStream_t stream) {
  const unsigned blocks = std::min((arguments.row_count + kWarps - 1) / kWarps, kBlocksMax);
  return Launch(ConvertRowsToFp16Kernel, dim3(blocks), dim3(kWarps * 32), 0, stream, arguments);
}

cudaError_t LaunchConvertQueriesToFp16(const Pass& pass, __half* fp16_queries,
                                       cudaStream_t stream) {
  return Launch(ConvertQueriesToFp16Kernel, dim3(pass.batch), dim3(kWarps * 32), 0, stream, pass,
                fp16_queries);
}

}  // namespace simile::kernels

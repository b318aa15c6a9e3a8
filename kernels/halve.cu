#include "kernels/halve.h"

#include "kernels/device.h"

namespace simile::kernels {
namespace {

constexpr unsigned kWarps = 8;
constexpr unsigned kBlocksMax = 65'535;

}  // namespace

__global__ void __launch_bounds__(kWarps * 32)
    HalveRowsKernel(const SIMILE_GRID_CONSTANT HalveRowsArguments arguments) {
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
      arguments.halves[to + i] = half;
      const double lost = static_cast<double>(value) * static_cast<double>(arguments.unit) -
                          static_cast<double>(__half2float(half));
      squares += lost * lost;
    }
#pragma unroll
    for (int step = 16; step != 0; step /= 2) squares += __shfl_xor_sync(~0U, squares, step);
    greatest = squares > greatest ? squares : greatest;
  }
  // Doubles that are not negative compare as their bits do.
  if (lane == 0) atomicMax(arguments.residual_squares, Bits<unsigned long long>(greatest));
}

__global__ void __launch_bounds__(kWarps * 32)
    HalveQueriesKernel(const SIMILE_GRID_CONSTANT Pass pass, __half* halves) {
  const unsigned query = blockIdx.x;
  const std::size_t first = static_cast<std::size_t>(query) * pass.stride;
  const float unit = pass.terms[query].unit_of_query;
  for (unsigned i = threadIdx.x; i < pass.stride; i += blockDim.x) {
    halves[first + i] = __float2half_rn(pass.queries[first + i] * unit);
  }
}

cudaError_t LaunchHalveRows(const HalveRowsArguments& arguments, cudaStream_t stream) {
  const unsigned blocks = min((arguments.row_count + kWarps - 1) / kWarps, kBlocksMax);
  return Launch(HalveRowsKernel, dim3(blocks), dim3(kWarps * 32), 0, stream, arguments);
}

cudaError_t LaunchHalveQueries(const Pass& pass, __half* halves, cudaStream_t stream) {
  return Launch(HalveQueriesKernel, dim3(pass.batch), dim3(kWarps * 32), 0, stream, pass, halves);
}

}  // namespace simile::kernels

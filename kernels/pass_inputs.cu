#include "kernels/pass_inputs.h"

#include "kernels/device.h"

namespace simile::kernels {
namespace {

constexpr unsigned kThreads = 256;

}  // namespace

__global__ void __launch_bounds__(kThreads)
    TakeQueriesKernel(const SIMILE_GRID_CONSTANT TakeQueriesArguments arguments) {
  const unsigned word = blockIdx.x * kThreads + threadIdx.x;
  if (word >= arguments.bytes / sizeof(unsigned)) return;
  // Volatile, because the host writes the block again for every pass, so no cache may answer.
  const auto* from = reinterpret_cast<const volatile unsigned*>(arguments.from);
  reinterpret_cast<unsigned*>(arguments.to)[word] = from[word];
}

cudaError_t LaunchTakeQueries(const TakeQueriesArguments& arguments, cudaStream_t stream) {
  const std::size_t words = arguments.bytes / sizeof(unsigned);
  const auto blocks = static_cast<unsigned>((words + kThreads - 1) / kThreads);
  return Launch(TakeQueriesKernel, dim3(blocks), dim3(kThreads), 0, stream, arguments);
}

__global__ void __launch_bounds__(kThreads)
    OrderMaskKernel(const SIMILE_GRID_CONSTANT OrderMaskArguments arguments) {
  const unsigned position = blockIdx.x * kThreads + threadIdx.x;
  bool passes = false;
  if (position < arguments.row_count) {
    const unsigned bit = arguments.first_bit + arguments.row_of[position];
    passes = (arguments.by_row[bit / 32] >> bit % 32 & 1U) != 0;
  }
  const unsigned word = __ballot_sync(~0U, passes ? 1 : 0);
  if (position % 32 == 0 && position < arguments.row_count) {
    arguments.by_position[position / 32] = word;
  }
}

cudaError_t LaunchOrderMask(const OrderMaskArguments& arguments, cudaStream_t stream) {
  const unsigned blocks = (arguments.row_count + kThreads - 1) / kThreads;
  return Launch(OrderMaskKernel, dim3(blocks), dim3(kThreads), 0, stream, arguments);
}

}  // namespace simile::kernels

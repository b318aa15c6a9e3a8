#include "kernels/convert.h"

#include <algorithm>

#include "kernels/device.h"
#include "kernels/int8_gate.cuh"

namespace simile::kernels {
namespace {

constexpr unsigned kWarpsMax = 8;
constexpr unsigned kBlocksMax = 65'535;
constexpr float kCodeMax = 127;
constexpr float kPlanesMax = 127 * 128;
// A vector whose coordinates are all smaller gets no codes; all of it is residual.
constexpr float kLeast = 0x1p-64F;

struct VectorShared {
  SharedArray<float, kInt8StrideMax> rotated;
  SharedArray<double, kWarpsMax> parts;
};

// The sum or the maximum over the block, in all threads.
template <bool kGreatest>
__device__ __forceinline__ double OverBlock(double value, VectorShared& shared) {
  const auto combined = [](double a, double b) { return kGreatest ? (a > b ? a : b) : a + b; };
#pragma unroll
  for (int step = 16; step != 0; step /= 2) {
    value = combined(value, __shfl_xor_sync(~0U, value, step));
  }
  __syncthreads();  // the parts of the previous call have been read
  if (threadIdx.x % 32 == 0) shared.parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared.parts[0];
  for (unsigned i = 1; i < blockDim.x / 32; ++i) value = combined(value, shared.parts[i]);
  return value;
}

// Sums and differences of numbers 32, 16, 8, 4, 2 and 1 apart: Hadamard's matrix for 64 numbers. A
// lane holds the numbers `lane` and `lane` + 32.
__device__ __forceinline__ void Hadamard64(float& first, float& second, unsigned lane) {
  const float sum = first + second;
  second = first - second;
  first = sum;
#pragma unroll
  for (unsigned step = 16; step != 0; step /= 2) {
    const float other_first = __shfl_xor_sync(~0U, first, static_cast<int>(step));
    const float other_second = __shfl_xor_sync(~0U, second, static_cast<int>(step));
    first = (lane & step) != 0 ? other_first - first : first + other_first;
    second = (lane & step) != 0 ? other_second - second : second + other_second;
  }
}

// Rotates vector * unit into shared memory, operation by operation as certificate::Rotation.
// Returns the largest magnitude.
//   stride  of the vector, a multiple of 32: only the second half of the last 64 numbers may be
//           missing
// REQUIRES: a barrier since the previous vector was read, such as OverBlock's.
__device__ __forceinline__ float Rotate(const float* vector, unsigned stride, float unit,
                                        const float* signs, unsigned rotated_stride,
                                        VectorShared& shared) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, blocks = rotated_stride / 64;
  for (unsigned block = warp; block < blocks; block += blockDim.x / 32) {
    const unsigned at = block * 64 + lane;
    float first = vector[at] * unit * signs[at];
    float second = at + 32 < stride ? vector[at + 32] * unit * signs[at + 32] : 0.0F;
    Hadamard64(first, second, lane);
    shared.rotated[lane * blocks + block] = first;
    shared.rotated[(lane + 32) * blocks + block] = second;
  }
  __syncthreads();
  float largest = 0;
  for (unsigned block = warp; block < blocks; block += blockDim.x / 32) {
    const unsigned at = block * 64 + lane;
    float first = shared.rotated[at] * signs[rotated_stride + at];
    float second = shared.rotated[at + 32] * signs[rotated_stride + at + 32];
    Hadamard64(first, second, lane);
    shared.rotated[at] = first;
    shared.rotated[at + 32] = second;
    largest = max(largest, max(fabsf(first), fabsf(second)));
  }
  return static_cast<float>(OverBlock<true>(static_cast<double>(largest), shared));
}

// Any rounding is correct, because errors are measured on the resulting codes.
__device__ __forceinline__ int ToCode(float value, float steps_per_unit, float limit) {
  return __float2int_rn(min(max(value * steps_per_unit, -limit), limit));
}

__device__ __forceinline__ double Square(double value) { return value * value; }

// A warp for each 64 numbers, up to kWarpsMax.
dim3 ThreadsFor(unsigned stride) { return dim3(32 * std::min(stride / 64, kWarpsMax)); }

}  // namespace

__global__ void __launch_bounds__(kWarpsMax * 32)
    ConvertRowsToInt8Kernel(const SIMILE_GRID_CONSTANT ConvertToInt8Arguments arguments) {
  __shared__ VectorShared shared;
  const unsigned stride = arguments.int8_stride;
  float longest = 0, greatest = 0;
  for (unsigned position = blockIdx.x; position < arguments.row_count; position += gridDim.x) {
    const float largest = Rotate(
        arguments.rows + static_cast<std::size_t>(arguments.row_of[position]) * arguments.stride,
        arguments.stride, arguments.unit, arguments.signs, stride, shared);
    const float steps = largest > kLeast ? kCodeMax / largest : 0.0F;
    signed char* const codes = arguments.codes + static_cast<std::size_t>(position) * stride;
    double product = 0, squares = 0;
    for (unsigned i = threadIdx.x; i < stride; i += blockDim.x) {
      const int code = ToCode(shared.rotated[i], steps, kCodeMax);
      codes[i] = static_cast<signed char>(code);
      product += static_cast<double>(shared.rotated[i]) * code;
      squares += Square(code);
    }
    product = OverBlock<false>(product, shared);
    squares = OverBlock<false>(squares, shared);
    // The least |y - scale * codes|.
    const float scale = squares > 0 ? static_cast<float>(product / squares) : 0.0F;
    double lost = 0;
    for (unsigned i = threadIdx.x; i < stride; i += blockDim.x) {
      const int code = ToCode(shared.rotated[i], steps, kCodeMax);
      lost += Square(static_cast<double>(shared.rotated[i]) - static_cast<double>(scale) * code);
    }
    const float residual = RoundedUp(sqrt(OverBlock<false>(lost, shared)));
    if (threadIdx.x == 0) arguments.terms[position] = {scale, residual};
    longest = max(longest, RoundedUp(static_cast<double>(scale) * sqrt(squares)));
    greatest = max(greatest, residual);
  }
  if (threadIdx.x != 0) return;
  // Non-negative floats compare as their bits do.
  atomicMax(arguments.maxima, Bits<unsigned>(longest));
  atomicMax(arguments.maxima + 1, Bits<unsigned>(greatest));
}

__global__ void __launch_bounds__(kWarpsMax * 32)
    ConvertQueriesToInt8Kernel(const SIMILE_GRID_CONSTANT Pass pass,
                               const SIMILE_GRID_CONSTANT Int8Rows int8) {
  __shared__ VectorShared shared;
  const unsigned query = blockIdx.x;
  const float unit = pass.terms[query].unit_of_query;
  const float* vector = pass.queries + static_cast<std::size_t>(query) * pass.stride;
  const float largest = Rotate(vector, pass.stride, unit, int8.signs, int8.stride, shared);
  double squares = 0;
  for (unsigned i = threadIdx.x; i < pass.stride; i += blockDim.x)
    squares += Square(vector[i] * unit);
  const float length = RoundedUp(sqrt(OverBlock<false>(squares, shared)));
  const float scale = largest > kLeast ? largest / kPlanesMax : 0.0F;
  const float steps = largest > kLeast ? kPlanesMax / largest : 0.0F;
  signed char* const high = int8.planes + static_cast<std::size_t>(query) * 2 * int8.stride;
  double lost = 0;
  for (unsigned i = threadIdx.x; i < int8.stride; i += blockDim.x) {
    const int code = ToCode(shared.rotated[i], steps, kPlanesMax);
    const int upper = (code + 64) >> 7;  // the nearest multiple of 128
    high[i] = static_cast<signed char>(upper);
    high[int8.stride + i] = static_cast<signed char>(code - upper * 128);
    lost += Square(static_cast<double>(shared.rotated[i]) - static_cast<double>(scale) * code);
  }
  lost = OverBlock<false>(lost, shared);
  if (threadIdx.x == 0) {
    int8.queries[query] = {scale, length, Int8Margin(sqrt(lost), length, int8.limits)};
  }
}

cudaError_t LaunchConvertRowsToInt8(const ConvertToInt8Arguments& arguments, cudaStream_t stream) {
  return Launch(ConvertRowsToInt8Kernel, dim3(std::min(arguments.row_count, kBlocksMax)),
                ThreadsFor(arguments.int8_stride), 0, stream, arguments);
}

cudaError_t LaunchConvertQueriesToInt8(const Pass& pass, const Int8Rows& int8,
                                       cudaStream_t stream) {
  return Launch(ConvertQueriesToInt8Kernel, dim3(pass.batch), ThreadsFor(int8.stride), 0, stream,
                pass, int8);
}

}  // namespace simile::kernels

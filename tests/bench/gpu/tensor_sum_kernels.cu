#include "bench/gpu/tensor_sum_kernels.h"

#include "kernels/device.h"

namespace simile::bench::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kTile = 32;  // rows and columns of a comparing block
constexpr unsigned kStep = 32;  // terms in shared memory at once

using kernels::Bits;

__device__ __forceinline__ unsigned Mixed(unsigned value) {
  value ^= value >> 16;
  value *= 0x7feb352dU;
  value ^= value >> 15;
  value *= 0x846ca68bU;
  return value ^ (value >> 16);
}

__device__ __forceinline__ __half DrawTerm(Terms terms, unsigned bits) {
  constexpr unsigned kExponentBias = 15;
  unsigned exponent = kExponentBias - 5;
  if (terms == Terms::kWide) exponent = kExponentBias - 1 - (bits >> 10 & 0xffU) * 14 / 256;
  const unsigned sign = terms == Terms::kMixed ? (bits >> 20 & 1U) << 15 : 0;
  return Bits<__half>(static_cast<unsigned short>(sign | exponent << 10 | (bits & 0x3ffU)));
}

// Terms::kMostCut; one term in eight has half the size, so that cutting a block's sum loses too.
__device__ __forceinline__ __half DrawMostCutTerm(std::size_t vector, std::size_t at, unsigned bits,
                                                  unsigned seed) {
  constexpr unsigned kExponentBias = 15;
  const unsigned odd = static_cast<unsigned>(vector % 2);
  if (at == 0 && odd == 0) return __float2half_rn(1.0F);
  const unsigned narrower = Mixed(static_cast<unsigned>(vector) ^ seed) & 1U;
  const unsigned exponent = kExponentBias - 12 - narrower - ((bits >> 20 & 7U) == 0 ? 1 : 0);
  constexpr unsigned kNearlyTwo = 0x3e0;  // the mantissa's high bits
  return Bits<__half>(
      static_cast<unsigned short>(odd << 15 | exponent << 10 | kNearlyTwo | (bits & 0x1fU)));
}

__device__ __forceinline__ unsigned PackFp16x2(const __half* from) {
  return *reinterpret_cast<const unsigned*>(from);
}

__device__ __forceinline__ void Raise(unsigned* worst, double error, double bound) {
  const double ratio = bound > 0 ? error / bound : (error > 0 ? 2.0 : 0.0);
  // NaN counts as beyond every bound.
  const float clamped = ratio >= 0 ? __double2float_ru(ratio) : 1e30F;
  atomicMax(worst, __float_as_uint(clamped));
}

}  // namespace

__global__ void __launch_bounds__(kThreads)
    DrawTermsKernel(Terms terms, __half* vectors, std::size_t count, unsigned length,
                    unsigned seed) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * kThreads;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += step) {
    const unsigned bits = Mixed(static_cast<unsigned>(i) ^ Mixed(seed));
    vectors[i] = terms == Terms::kMostCut ? DrawMostCutTerm(i / length, i % length, bits, seed)
                                          : DrawTerm(terms, bits);
  }
}

// A warp computes 16 x 8 sums; the eight warps of a block take neighbouring columns.
__global__ void __launch_bounds__(kThreads)
    TensorSumsKernel(SumShape shape, const __half* left, const __half* right, float start,
                     float* sums) {
  const unsigned lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
  const unsigned row = blockIdx.y * 16 + group;
  const unsigned column = (blockIdx.x * (kThreads / 32) + threadIdx.x / 32) * 8;
  if (column >= shape.columns) return;  // a whole warp
  const __half* upper = left + static_cast<std::size_t>(row) * shape.length + pair;
  const __half* lower = upper + static_cast<std::size_t>(8) * shape.length;
  const __half* other = right + static_cast<std::size_t>(column + group) * shape.length + pair;
  float sum[4] = {start, start, start, start};
  for (unsigned i = 0; i < shape.length; i += 16) {
    const unsigned a[4] = {PackFp16x2(upper + i), PackFp16x2(lower + i), PackFp16x2(upper + i + 8),
                           PackFp16x2(lower + i + 8)};
    const unsigned b[2] = {PackFp16x2(other + i), PackFp16x2(other + i + 8)};
    kernels::Mma16x8x16(sum, a, b);
  }
  float* to = sums + static_cast<std::size_t>(row) * shape.columns + column + pair;
  to[0] = sum[0];
  to[1] = sum[1];
  to += static_cast<std::size_t>(8) * shape.columns;
  to[0] = sum[2];
  to[1] = sum[3];
}

// 32 x 32 sums per block, four per thread. Products of fp16 values are exact in double; the
// rounding of their sums is far below that of fp32.
__global__ void __launch_bounds__(kThreads)
    CompareSumsKernel(SumShape shape, const __half* left, const __half* right,
                      ComputedSums computed, double gamma, unsigned* worst) {
  __shared__ kernels::SharedArray<float, kTile*(kStep + 1)> rows;
  __shared__ kernels::SharedArray<float, kTile*(kStep + 1)> columns;
  const unsigned x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  constexpr unsigned kRowsOfThread = kTile * kTile / kThreads;
  double sum[kRowsOfThread] = {}, magnitude[kRowsOfThread] = {};
  for (unsigned first = 0; first < shape.length; first += kStep) {
    for (unsigned r = y; r < kTile; r += kThreads / kTile) {
      const bool there = first + x < shape.length;
      const std::size_t row = blockIdx.y * kTile + r, column = blockIdx.x * kTile + r;
      rows[r * (kStep + 1) + x] = there ? __half2float(left[row * shape.length + first + x]) : 0.0F;
      columns[r * (kStep + 1) + x] =
          there ? __half2float(right[column * shape.length + first + x]) : 0.0F;
    }
    __syncthreads();
    for (unsigned i = 0; i < kStep; ++i) {
      const double other = static_cast<double>(columns[x * (kStep + 1) + i]);
#pragma unroll
      for (unsigned r = 0; r < kRowsOfThread; ++r) {
        const double own = static_cast<double>(rows[(y * kRowsOfThread + r) * (kStep + 1) + i]);
        sum[r] = fma(own, other, sum[r]);
        magnitude[r] = fma(fabs(own), fabs(other), magnitude[r]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (unsigned r = 0; r < kRowsOfThread; ++r) {
    const std::size_t row = blockIdx.y * kTile + y * kRowsOfThread + r;
    const std::size_t at = row * shape.columns + blockIdx.x * kTile + x;
    const double bound = gamma * magnitude[r];
    if (computed.tensor != nullptr) {
      Raise(worst + kTensor, fabs(static_cast<double>(computed.tensor[at]) - sum[r]), bound);
    }
    if (computed.from_start != nullptr) {
      const double start = static_cast<double>(computed.start);
      Raise(worst + kFromStart,
            fabs(static_cast<double>(computed.from_start[at]) - (start + sum[r])),
            gamma * (magnitude[r] + fabs(start)));
    }
    if (computed.blas_floats != nullptr) {
      Raise(worst + kBlasFloats, fabs(static_cast<double>(computed.blas_floats[at]) - sum[r]),
            bound);
    }
    if (computed.blas_fp16 != nullptr) {
      const double value = static_cast<double>(__half2float(computed.blas_fp16[at]));
      Raise(worst + kBlasFp16, fabs(value - sum[r]),
            bound + 0x1p-11 * (fabs(sum[r]) + bound) + 0x1p-25);
    }
  }
}

cudaError_t LaunchDrawTerms(Terms terms, __half* vectors, std::size_t count, unsigned length,
                            unsigned seed, cudaStream_t stream) {
  constexpr unsigned kBlocks = 1'024;
  return kernels::Launch(DrawTermsKernel, dim3(kBlocks), dim3(kThreads), 0, stream, terms, vectors,
                         count * length, length, seed);
}

cudaError_t LaunchTensorSums(const SumShape& shape, const __half* left, const __half* right,
                             float start, float* sums, cudaStream_t stream) {
  constexpr unsigned kColumns = kThreads / 32 * 8;
  const dim3 grid((shape.columns + kColumns - 1) / kColumns, shape.rows / 16);
  return kernels::Launch(TensorSumsKernel, grid, dim3(kThreads), 0, stream, shape, left, right,
                         start, sums);
}

cudaError_t LaunchCompareSums(const SumShape& shape, const __half* left, const __half* right,
                              const ComputedSums& computed, double gamma, unsigned* worst,
                              cudaStream_t stream) {
  const dim3 grid(shape.columns / kTile, shape.rows / kTile);
  return kernels::Launch(CompareSumsKernel, grid, dim3(kThreads), 0, stream, shape, left, right,
                         computed, gamma, worst);
}

}  // namespace simile::bench::gpu

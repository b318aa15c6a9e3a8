#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>

namespace simile::bench::gpu {

// Sums of fp16 products, computed by tensor cores and in double, to test the bound that
// certificate/device_bounds.h states. Lengths are multiples of 16, row counts of 32.

enum class Terms : int {
  kSameSign,  // random mantissas, all products within a factor of four
  kMixed,     // the same with random signs
  kWide,      // the same with exponents over a range of 2^-14 .. 2^-1
  // The worst for tensor cores, which cut the terms of a block at a bit that the largest one sets
  // (docs/design/tensor-core-sums.md): one product is 1 and the others lie just below 2^-22, 2^-23
  // or 2^-24, whichever bit a card keeps; all of one sign. Products of vectors with odd and even
  // numbers are negative and have no 1: there the start is the large term.
  kMostCut,
};

// vectors [count][length]
cudaError_t LaunchDrawTerms(Terms terms, __half* vectors, std::size_t count, unsigned length,
                            unsigned seed, cudaStream_t stream);

struct SumShape {
  unsigned rows = 0;     // of the left matrix
  unsigned columns = 0;  // rows of the right matrix
  unsigned length = 0;
};

// sums[r][c] = start + left[r] . right[c], by the engine's own Mma16x8x16.
//   sums  [rows][columns]
cudaError_t LaunchTensorSums(const SumShape& shape, const __half* left, const __half* right,
                             float start, float* sums, cudaStream_t stream);

// The sums of each method; any of them may be null.
struct ComputedSums {
  const float* tensor;       // [rows][columns]
  const float* from_start;   // [rows][columns], which start at `start`
  const float* blas_floats;  // [rows][columns]
  const __half* blas_fp16;   // [rows][columns]
  float start;
};
enum SumMethod : unsigned { kTensor, kFromStart, kBlasFloats, kBlasFp16, kSumMethodCount };

// Raises worst[m] to the largest |sum - double sum| / bound of method m, where the bound is
//   gamma * (sum of |products| + |start|)  and, for fp16 results, 2^-11 of the sum and 2^-25 more.
//   gamma  for this length (certificate/device_bounds.cpp)
//   worst  [kSumMethodCount] bits of non-negative floats, which order like the floats
cudaError_t LaunchCompareSums(const SumShape& shape, const __half* left, const __half* right,
                              const ComputedSums& computed, double gamma, unsigned* worst,
                              cudaStream_t stream);

}  // namespace simile::bench::gpu

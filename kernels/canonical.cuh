#pragma once

#include "kernels/device.h"

// The canonical score by one warp (src/certificate/canonical_score.h): one partial sum per lane by
// explicit fused multiply-adds, then a tree over the lanes. The same bits as on the CPU.

namespace simile::kernels {

// Adds lanes 16, 8, 4, 2, 1 apart; addition commutes, so every lane ends with lane 0's sum.
__device__ __forceinline__ float SumOfLanes(float sum) {
#pragma unroll
  for (int step = 16; step != 0; step /= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(~0U, sum, step));
  }
  return __fadd_rn(sum, 0.0F);  // -0 becomes +0
}

// Two rows at once, for twice the loads in flight. All lanes get both scores.
//   stride  a multiple of 32
struct ScorePair {
  float first, second;
};
__device__ __forceinline__ ScorePair CanonicalScores(const float* query, const float* first,
                                                     const float* second, unsigned stride,
                                                     unsigned lane) {
  float sum_first = 0, sum_second = 0;
#pragma unroll 4
  for (unsigned i = lane; i < stride; i += 32) {
    const float value = __ldg(query + i);
    sum_first = __fmaf_rn(value, __ldg(first + i), sum_first);
    sum_second = __fmaf_rn(value, __ldg(second + i), sum_second);
  }
  return {SumOfLanes(sum_first), SumOfLanes(sum_second)};
}

}  // namespace simile::kernels

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

struct ScorePair {
  float first, second;
};

// Adds the lane's products of the next kSteps * 32 columns, in their order. Issues all loads before
// the first sum needs one. A loop whose length depends on the lane would wait for each load.
template <unsigned kSteps>
__device__ __forceinline__ void AddColumns(const float*& query, const float*& first,
                                           const float*& second, ScorePair& sums) {
  float values[kSteps], of_first[kSteps], of_second[kSteps];
#pragma unroll
  for (unsigned i = 0; i < kSteps; ++i) {
    values[i] = __ldg(query + i * 32);
    of_first[i] = __ldg(first + i * 32);
    of_second[i] = __ldg(second + i * 32);
  }
#pragma unroll
  for (unsigned i = 0; i < kSteps; ++i) {
    sums.first = __fmaf_rn(values[i], of_first[i], sums.first);
    sums.second = __fmaf_rn(values[i], of_second[i], sums.second);
  }
  query += kSteps * 32;
  first += kSteps * 32;
  second += kSteps * 32;
}

// The blocks of 256 threads per multiprocessor for kernels that compute canonical scores. Leaves 64
// registers a thread. Without this number the compiler aims at full occupancy, with 32 registers
// and few loads in flight.
inline constexpr unsigned kScoringBlocksAtOnce = 4;

// Scores two rows at once, for twice the loads in flight: rows of 384 dimensions wait for memory
// once, rows of 768 dimensions twice. All lanes get both scores.
//   stride  a multiple of 32
__device__ __forceinline__ ScorePair CanonicalScores(const float* query, const float* first,
                                                     const float* second, unsigned stride,
                                                     unsigned lane) {
  constexpr unsigned kStepsAhead = 12;
  query += lane;
  first += lane;
  second += lane;
  ScorePair sums{0, 0};
  unsigned steps = stride / 32;
#pragma unroll 1
  for (; steps >= kStepsAhead; steps -= kStepsAhead) {
    AddColumns<kStepsAhead>(query, first, second, sums);
  }
  if ((steps & 8) != 0) AddColumns<8>(query, first, second, sums);
  if ((steps & 4) != 0) AddColumns<4>(query, first, second, sums);
  if ((steps & 2) != 0) AddColumns<2>(query, first, second, sums);
  if ((steps & 1) != 0) AddColumns<1>(query, first, second, sums);
  return {SumOfLanes(sums.first), SumOfLanes(sums.second)};
}

}  // namespace simile::kernels

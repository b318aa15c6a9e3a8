#pragma once

#include "kernels/device.h"

// The rank-th greatest of many numbers, by counting. For a whole block.

namespace simile::kernels {

inline constexpr unsigned kBins = 256;

struct BinPlace {
  unsigned bin;
  unsigned rank;  // within the bin, from 1
};

// The sum of the values of this lane and of all lanes before it. For a whole warp.
__device__ __forceinline__ unsigned SumUpTo(unsigned value) {
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned other = __shfl_up_sync(~0U, value, step);
    if (threadIdx.x % 32 >= step) value += other;
  }
  return value;
}

// The bin that holds the rank-th item from the top; same for all threads.
//   counts  [kBins], written before the call
//   place   in shared memory; one thread writes the result for all
// REQUIRES: 1 <= rank <= the sum of the counts.
__device__ __forceinline__ BinPlace FindBin(const unsigned* counts, BinPlace* place,
                                            unsigned rank) {
  constexpr unsigned kBinsOfLane = kBins / 32;
  __syncthreads();
  if (threadIdx.x < 32) {
    const unsigned lane = threadIdx.x, top = kBins - 1 - lane * kBinsOfLane;
    unsigned mine = 0;
    for (unsigned i = 0; i < kBinsOfLane; ++i) mine += counts[top - i];
    const unsigned upto = SumUpTo(mine);
    if (upto >= rank && upto - mine < rank) {
      unsigned left = rank - (upto - mine), bin = top;
      while (left > counts[bin]) left -= counts[bin--];
      *place = {bin, left};
    }
  }
  __syncthreads();
  return *place;
}

// Replaces each count by the sum of the counts before it. For a block of kBins threads.
//   counts  [kBins] in shared memory
//   sums    [kBins / 32] likewise
// REQUIRES: a barrier since the counts were written. Ends with a barrier.
__device__ __forceinline__ void SumBefore(unsigned* counts, unsigned* sums) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned mine = counts[threadIdx.x], upto = SumUpTo(mine);
  if (lane == 31) sums[warp] = upto;
  __syncthreads();
  unsigned before = upto - mine;
  for (unsigned i = 0; i < warp; ++i) before += sums[i];
  counts[threadIdx.x] = before;
  __syncthreads();
}

}  // namespace simile::kernels

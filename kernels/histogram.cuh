#pragma once

#include "kernels/device.h"

// The rank-th greatest of many numbers, by counting. For a whole block.

namespace simile::kernels {

inline constexpr unsigned kBins = 256;

struct BinPlace {
  unsigned bin;
  unsigned rank;  // within the bin, from 1
};

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
    unsigned upto = mine;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
      const unsigned other = __shfl_up_sync(~0U, upto, step);
      if (lane >= step) upto += other;
    }
    if (upto >= rank && upto - mine < rank) {
      unsigned left = rank - (upto - mine), bin = top;
      while (left > counts[bin]) left -= counts[bin--];
      *place = {bin, left};
    }
  }
  __syncthreads();
  return *place;
}

}  // namespace simile::kernels

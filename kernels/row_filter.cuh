#pragma once

#include "kernels/device.h"
#include "kernels/pass.h"

// Tests whether rows pass a query's mask and exclusions.

namespace simile::kernels {

__device__ __forceinline__ bool MaskPasses(const QueryTerms& terms, unsigned position) {
  return terms.mask == nullptr || (terms.mask[position / 32] >> position % 32 & 1U) != 0;
}

__device__ __forceinline__ bool IsExcluded(const QueryTerms& terms, unsigned row) {
  unsigned low = 0, high = terms.excluded_count;
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    const unsigned there = __ldg(terms.excluded + middle);
    if (there == row) return true;
    if (there < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return false;
}

}  // namespace simile::kernels

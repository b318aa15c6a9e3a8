#pragma once

// Sums that the kernels with wide registers share. For files compiled with -mavx2 or more: read the
// warning in canonical_kernels.h before including anything. Static, so that each file has its own.

#include <immintrin.h>

#include "certificate/tile_walk.h"

namespace simile::certificate {

// Adds lanes 4, 2 and 1 apart, for four rows, to their four scores. Each row's additions are the
// canonical ones; the shuffles only bring the rows side by side.
//   eight the sums l + l+8 of each row
__attribute__((always_inline)) static inline __m128 AddEight(const __m256 (&eight)[kTileRows]) {
  // l + l+4: rows 0 and 1 in one register, 2 and 3 in another.
  const __m256 four_01 = _mm256_add_ps(_mm256_permute2f128_ps(eight[0], eight[1], 0x20),
                                       _mm256_permute2f128_ps(eight[0], eight[1], 0x31));
  const __m256 four_23 = _mm256_add_ps(_mm256_permute2f128_ps(eight[2], eight[3], 0x20),
                                       _mm256_permute2f128_ps(eight[2], eight[3], 0x31));
  // l + l+2: pairs of lanes in the order of rows 0, 2 | 1, 3.
  const __m256 two = _mm256_add_ps(_mm256_shuffle_ps(four_01, four_23, _MM_SHUFFLE(1, 0, 1, 0)),
                                   _mm256_shuffle_ps(four_01, four_23, _MM_SHUFFLE(3, 2, 3, 2)));
  // l + l+1: one value for rows 0, 2 in the low half and 1, 3 in the high one.
  const __m256 one = _mm256_add_ps(_mm256_shuffle_ps(two, two, _MM_SHUFFLE(2, 0, 2, 0)),
                                   _mm256_shuffle_ps(two, two, _MM_SHUFFLE(3, 1, 3, 1)));
  const __m128 in_order =
      _mm_unpacklo_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1));
  // Adding +0 turns -0 into +0 and changes nothing else (RankedScore).
  return _mm_add_ps(in_order, _mm_setzero_ps());
}

static inline void StoreFirst(__m128 four, std::size_t count, float* scores) {
  if (count == kTileRows) return _mm_storeu_ps(scores, four);
  float all[kTileRows];
  _mm_storeu_ps(all, four);
  for (std::size_t i = 0; i < count; ++i) scores[i] = all[i];
}

}  // namespace simile::certificate

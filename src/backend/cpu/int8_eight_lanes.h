#pragma once

// What the kernels with registers of eight sums share. For files compiled with -mavx2: read the
// note in int8_kernel.h before including anything.

#include <immintrin.h>

#include "backend/cpu/int8_kernel.h"

namespace simile::backend::cpu {

// Products must be a type of an unnamed namespace; see Int8Walk.
template <class Products>
struct EightLanes {
  // Writes the sums of kQueries queries and one group, and returns what they have in common.
  //   sums  the group's place in the first query's: sums[(q * kGroupsTogether) * kGroupRows + row]
  template <std::size_t kQueries>
  static __m256i Store(const __m256i (&sum)[kQueries][2], std::int32_t* sums) {
    __m256i all = _mm256_set1_epi32(-1);
#pragma GCC unroll 4
    for (std::size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
      for (std::size_t half = 0; half < 2; ++half) {
        all = _mm256_and_si256(all, sum[q][half]);
        _mm256_store_si256(
            reinterpret_cast<__m256i*>(sums + q * kGroupsTogether * kGroupRows + half * 8),
            sum[q][half]);
      }
    }
    return all;
  }

  // A hit anywhere clears the sign bit of what all sums have in common.
  static bool HasHit(__m256i all) { return _mm256_movemask_ps(_mm256_castsi256_ps(all)) != 0xFF; }
};

}  // namespace simile::backend::cpu

#pragma once

// Code shared by the kernels with registers of sixteen sums. For files compiled with -mavx512f
// -mavx512dq: read the note in int8_kernel.h before including anything.

#include <immintrin.h>

#include "backend/cpu/int8_kernel.h"

namespace simile::backend::cpu {

// Appends the hits among sixteen sums. Moves the hits together and stores whole registers, so that
// no branch depends on their number.
//   first_pair  of the first sum
__attribute__((always_inline)) static inline void AppendSixteen(__m512i sums,
                                                                std::uint32_t first_pair,
                                                                HitList& hits) {
  const auto hit = static_cast<__mmask16>(~_mm512_movepi32_mask(sums));
  const __m512i pairs =
      _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first_pair)),
                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  _mm512_storeu_si512(hits.pairs + hits.count, _mm512_maskz_compress_epi32(hit, pairs));
  _mm512_storeu_si512(hits.sums + hits.count, _mm512_maskz_compress_epi32(hit, sums));
  hits.count += static_cast<std::size_t>(__builtin_popcount(hit));
}

}  // namespace simile::backend::cpu

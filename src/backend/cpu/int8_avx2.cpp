// Compiled with -mavx2. Read the note in int8_kernel.h before including anything.
#include <immintrin.h>

#include "backend/cpu/int8_eight_lanes.h"

namespace simile::backend::cpu {
namespace {

// vpmaddubsw adds the products of two columns in sixteen bits. Two such sums fit them whatever the
// row's bytes are, because the query's codes in these four columns are limited: 255 * 128 < 2^15.
// So one widening serves eight columns.
constexpr std::int32_t kFourColumnsMax = 128;

struct Avx2Products : EightLanes<Avx2Products> {
  template <std::size_t kQueries, class Codes>
  static bool Score(const Codes& codes, const std::uint8_t* group, std::size_t group_bytes,
                    const std::int8_t* queries, std::size_t steps, const std::int32_t* starts,
                    std::int32_t* sums) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i all = _mm256_set1_epi32(-1);
    for (std::size_t g = 0; g < kGroupsTogether; ++g, group += group_bytes) {
      __m256i sum[kQueries][2];
#pragma GCC unroll 4
      for (std::size_t q = 0; q < kQueries; ++q)
        sum[q][0] = sum[q][1] = _mm256_set1_epi32(starts[q]);
      for (std::size_t step = 0; step < steps; ++step) {
        codes.AtStep(group, step);
        const std::int8_t* step_queries = queries + step * kTileQueries * 64;
        for (std::size_t pair = 0; pair < 8; ++pair) {
          __m256i rows[2][2];
#pragma GCC unroll 2
          for (std::size_t half = 0; half < 2; ++half) {
#pragma GCC unroll 2
            for (std::size_t eight = 0; eight < 2; ++eight)
              rows[half][eight] = codes.Load(group, step * 8 + pair, half, eight);
          }
#pragma GCC unroll 4
          for (std::size_t q = 0; q < kQueries; ++q) {
            const auto* bytes =
                reinterpret_cast<const std::int32_t*>(step_queries + q * 64 + pair * 8);
            const __m256i four = _mm256_set1_epi32(bytes[0]);
            const __m256i next_four = _mm256_set1_epi32(bytes[1]);
#pragma GCC unroll 2
            for (std::size_t eight = 0; eight < 2; ++eight) {
              const __m256i both =
                  _mm256_add_epi16(_mm256_maddubs_epi16(rows[0][eight], four),
                                   _mm256_maddubs_epi16(rows[1][eight], next_four));
              sum[q][eight] = _mm256_add_epi32(sum[q][eight], _mm256_madd_epi16(both, ones));
            }
          }
        }
      }
      all = _mm256_and_si256(all, Store(sum, sums + g * kGroupRows));
    }
    return HasHit(all);
  }
};

using Walk = Int8Walk<Avx2Products>;

}  // namespace

const Int8Kernel kInt8Avx2{"avx2",       kFourColumnsMax, true,       1U << 26,
                           &Walk::Enter, &Walk::Leave,    &Walk::Scan};

}  // namespace simile::backend::cpu

// Compiled with -mavx2. Read the note in int8_kernel.h before including anything.
#include <immintrin.h>

#include "backend/cpu/int8_eight_lanes.h"
#include "backend/cpu/int8_walk.h"

// Unrolled by hand, below, because GCC 12 else moves every sum between registers around each
// product, which takes a third of the speed.

namespace simile::backend::cpu {
namespace {

// Codes reach 63, row bytes 127: a pair of products stays within 2 * 127 * 63 = 16,002, so that the
// sixteen bits in which vpmaddubsw adds hold two pairs, and one widening serves eight columns.
struct Avx2Products : EightLanes<Avx2Products> {
  template <std::size_t kQueries>
  static bool Score(const std::uint8_t* codes, std::size_t group_bytes, const std::int8_t* queries,
                    std::size_t steps, const std::int32_t* starts, std::int32_t* sums) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i all = _mm256_set1_epi32(-1);
    for (std::size_t g = 0; g < kGroupsTogether; ++g) {
      __m256i sum[kQueries][2];
#pragma GCC unroll 4
      for (std::size_t q = 0; q < kQueries; ++q)
        sum[q][0] = sum[q][1] = _mm256_set1_epi32(starts[q]);
      const std::uint8_t* group = codes + g * group_bytes;
      for (std::size_t step = 0; step < steps; ++step) {
        const std::int8_t* step_queries = queries + step * kTileQueries * 64;
        for (std::size_t quad = 0; quad < 16; quad += 2, group += 128) {
          const auto* rows = reinterpret_cast<const __m256i*>(group);
#pragma GCC unroll 4
          for (std::size_t q = 0; q < kQueries; ++q) {
            const auto* bytes =
                reinterpret_cast<const std::int32_t*>(step_queries + q * 64 + quad * 4);
            const __m256i four = _mm256_set1_epi32(bytes[0]);
            const __m256i next_four = _mm256_set1_epi32(bytes[1]);
#pragma GCC unroll 4
            for (std::size_t half = 0; half < 2; ++half) {
              const __m256i pairs = _mm256_add_epi16(
                  _mm256_maddubs_epi16(_mm256_load_si256(rows + half), four),
                  _mm256_maddubs_epi16(_mm256_load_si256(rows + 2 + half), next_four));
              sum[q][half] = _mm256_add_epi32(sum[q][half], _mm256_madd_epi16(pairs, ones));
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

const Int8Kernel kInt8Avx2{"avx2", 63, &Walk::Enter, &Walk::Leave, &Walk::Scan};

}  // namespace simile::backend::cpu

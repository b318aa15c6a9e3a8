// Compiled with -mavx2 -mavxvnni. Read the note in int8_kernel.h before including anything.
#include <immintrin.h>

#include "backend/cpu/int8_walk.h"

// Unrolled by hand, below, because GCC 12 else moves every sum between registers around each
// product, which takes a third of the speed.

namespace simile::backend::cpu {
namespace {

constexpr std::size_t kHalfRows = 8;  // sums of one register

struct AvxVnniProducts {
  // Four groups one after the other: eight of sixteen registers hold the sums of four queries.
  template <std::size_t kQueries>
  static bool Score(const std::uint8_t* codes, std::size_t group_bytes, const std::int8_t* queries,
                    std::size_t steps, const std::int32_t* starts, std::int32_t* sums) {
    __m256i all = _mm256_set1_epi32(-1);
    for (std::size_t g = 0; g < kGroupsTogether; ++g) {
      __m256i sum[kQueries][2];
#pragma GCC unroll 4
      for (std::size_t q = 0; q < kQueries; ++q)
        sum[q][0] = sum[q][1] = _mm256_set1_epi32(starts[q]);
      const std::uint8_t* group = codes + g * group_bytes;
      for (std::size_t step = 0; step < steps; ++step) {
        const std::int8_t* step_queries = queries + step * kTileQueries * 64;
        for (std::size_t quad = 0; quad < 16; ++quad, group += 64) {
          const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(group));
          const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(group + 32));
#pragma GCC unroll 4
          for (std::size_t q = 0; q < kQueries; ++q) {
            const __m256i four = _mm256_set1_epi32(
                *reinterpret_cast<const std::int32_t*>(step_queries + q * 64 + quad * 4));
            sum[q][0] = _mm256_dpbusd_avx_epi32(sum[q][0], low, four);
            sum[q][1] = _mm256_dpbusd_avx_epi32(sum[q][1], high, four);
          }
        }
      }
#pragma GCC unroll 4
      for (std::size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
        for (std::size_t half = 0; half < 2; ++half) {
          all = _mm256_and_si256(all, sum[q][half]);
          _mm256_store_si256(reinterpret_cast<__m256i*>(
                                 sums + (q * kGroupsTogether + g) * kGroupRows + half * kHalfRows),
                             sum[q][half]);
        }
      }
    }
    // A hit anywhere clears the sign bit of what all have in common.
    return _mm256_movemask_ps(_mm256_castsi256_ps(all)) != 0xFF;
  }
};

void Enter(std::size_t) {}
void Leave() {}
void Scan(const BlockScan& block) { Int8Walk<AvxVnniProducts>::Scan(block); }

}  // namespace

const Int8Kernel kInt8AvxVnni{"avxvnni", 127, &Enter, &Leave, &Scan};

}  // namespace simile::backend::cpu

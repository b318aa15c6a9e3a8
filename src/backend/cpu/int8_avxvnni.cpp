// Compiled with -mavx2 -mavxvnni. Read the note in int8_kernel.h before including anything.
#include <immintrin.h>

#include "backend/cpu/int8_eight_lanes.h"

namespace simile::backend::cpu {
namespace {

struct AvxVnniProducts : EightLanes<AvxVnniProducts> {
  // Four groups one after the other: eight of sixteen registers hold the sums of four queries.
  template <std::size_t kQueries, class Codes>
  static bool Score(const Codes& codes, const std::uint8_t* group, std::size_t group_bytes,
                    const std::int8_t* queries, std::size_t steps, const std::int32_t* starts,
                    std::int32_t* sums) {
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
#pragma GCC unroll 2
          for (std::size_t half = 0; half < 2; ++half) {
            const __m256i low = codes.Load(group, step * 8 + pair, half, 0);
            const __m256i high = codes.Load(group, step * 8 + pair, half, 1);
#pragma GCC unroll 4
            for (std::size_t q = 0; q < kQueries; ++q) {
              const __m256i four = _mm256_set1_epi32(*reinterpret_cast<const std::int32_t*>(
                  step_queries + q * 64 + (pair * 2 + half) * 4));
              sum[q][0] = _mm256_dpbusd_avx_epi32(sum[q][0], low, four);
              sum[q][1] = _mm256_dpbusd_avx_epi32(sum[q][1], high, four);
            }
          }
        }
      }
      all = _mm256_and_si256(all, Store(sum, sums + g * kGroupRows));
    }
    return HasHit(all);
  }
};

using Walk = Int8Walk<AvxVnniProducts>;

}  // namespace

const Int8Kernel kInt8AvxVnni{"avxvnni",    0,          true, 1U << 28, &Walk::Enter,
                              &Walk::Leave, &Walk::Scan};

}  // namespace simile::backend::cpu

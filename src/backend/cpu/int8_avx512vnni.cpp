// Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni. Read the note in
// int8_kernel.h before including anything.
#include <immintrin.h>

#include "backend/cpu/int8_sixteen_sums.h"
#include "backend/cpu/int8_walk.h"

namespace simile::backend::cpu {
namespace {

// Loads four columns of a group's sixteen rows: `half` says which four of eight neighbouring
// columns.
template <bool kOneTurn>
class RowBytes {
 public:
  static constexpr std::size_t kInOneByte = 1;

  RowBytes(const std::uint8_t* /*int4_bytes*/, const PieceTurn& turn) : turn_(turn) {}

  // Called before the loads of a step's 64 columns.
  void AtStep(const std::uint8_t* groups, std::size_t group_bytes, std::size_t step) const {
    if constexpr (kOneTurn) return;
    const std::uint8_t* ahead = groups + turn_.piece_bytes + step * kGroupRows * 64;
    for (std::size_t line = turn_.from; line < turn_.to; ++line) {
      for (std::size_t g = 0; g < kGroupsTogether; ++g)
        _mm_prefetch(ahead + g * group_bytes + line * 64, _MM_HINT_T1);
    }
  }
  __m512i Load(const std::uint8_t* group, std::size_t pair, std::size_t half) const {
    const std::size_t at = (pair * 2 + half) * 64;
    if constexpr (kOneTurn) _mm_prefetch(group + turn_.piece_bytes + at, _MM_HINT_T0);
    return _mm512_load_si512(group + at);
  }

 private:
  PieceTurn turn_;
};

class RowInt4 {
 public:
  static constexpr std::size_t kInOneByte = 2;

  RowInt4(const std::uint8_t* int4_bytes, const PieceTurn& turn)
      : piece_bytes_(turn.piece_bytes),
        // Masked, because GCC 12 warns of the undefined register in the plain broadcast.
        bytes_(_mm512_maskz_broadcast_i32x4(
            0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(int4_bytes)))) {}

  void AtStep(const std::uint8_t*, std::size_t, std::size_t) const {}
  __m512i Load(const std::uint8_t* group, std::size_t pair, std::size_t half) const {
    if (half == 0) _mm_prefetch(group + piece_bytes_ + pair * 64, _MM_HINT_T0);
    __m512i int4 = _mm512_load_si512(group + pair * 64);
    if (half == 1) int4 = _mm512_srli_epi16(int4, 4);
    return _mm512_shuffle_epi8(bytes_, _mm512_and_si512(int4, _mm512_set1_epi8(15)));
  }

 private:
  std::size_t piece_bytes_;
  __m512i bytes_;
};

struct Avx512VnniProducts {
  template <bool kOneTurn>
  using Bytes = RowBytes<kOneTurn>;
  using Int4 = RowInt4;

  // Sixteen registers hold sums, four the rows' bytes; each query's four bytes are broadcast from
  // memory.
  template <std::size_t kQueries, class Codes>
  static bool Score(const Codes& codes, const std::uint8_t* group, std::size_t group_bytes,
                    const std::int8_t* queries, std::size_t steps, const std::int32_t* starts,
                    std::int32_t* sums) {
    __m512i sum[kQueries][kGroupsTogether];
#pragma GCC unroll 4
    for (std::size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
      for (std::size_t g = 0; g < kGroupsTogether; ++g) sum[q][g] = _mm512_set1_epi32(starts[q]);
    }
    for (std::size_t step = 0; step < steps; ++step) {
      codes.AtStep(group, group_bytes, step);
      const std::int8_t* step_queries = queries + step * kTileQueries * 64;
      for (std::size_t pair = 0; pair < 8; ++pair) {
#pragma GCC unroll 2
        for (std::size_t half = 0; half < 2; ++half) {
          __m512i rows[kGroupsTogether];
#pragma GCC unroll 4
          for (std::size_t g = 0; g < kGroupsTogether; ++g) {
            rows[g] = codes.Load(group + g * group_bytes, step * 8 + pair, half);
          }
#pragma GCC unroll 4
          for (std::size_t q = 0; q < kQueries; ++q) {
            const __m512i four = _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(
                step_queries + q * 64 + (pair * 2 + half) * 4));
#pragma GCC unroll 4
            for (std::size_t g = 0; g < kGroupsTogether; ++g) {
              sum[q][g] = _mm512_dpbusd_epi32(sum[q][g], rows[g], four);
            }
          }
        }
      }
    }
    // Only hits have sums that are not negative, so the AND of all sums has a clear sign bit if
    // there is a hit.
    __m512i all = sum[0][0];
#pragma GCC unroll 4
    for (std::size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
      for (std::size_t g = 0; g < kGroupsTogether; ++g) all = _mm512_and_si512(all, sum[q][g]);
    }
    if (_mm512_movepi32_mask(all) == 0xFFFF) return false;
#pragma GCC unroll 4
    for (std::size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
      for (std::size_t g = 0; g < kGroupsTogether; ++g) {
        _mm512_store_si512(sums + (q * kGroupsTogether + g) * kGroupRows, sum[q][g]);
      }
    }
    return true;
  }

  static void Append(const std::int32_t* sums, std::uint32_t first_pair, HitList& hits) {
    AppendSixteen(_mm512_load_si512(sums), first_pair, hits);
  }
};

using Walk = Int8Walk<Avx512VnniProducts>;

}  // namespace

const Int8Kernel kInt8Avx512Vnni{"avx512vnni", 0,          true, 1U << 29, &Walk::Enter,
                                 &Walk::Leave, &Walk::Scan};

}  // namespace simile::backend::cpu

#pragma once

// Code shared by the kernels with registers of eight sums. For files compiled with -mavx2: read the
// note in int8_kernel.h before including anything.

#include <immintrin.h>

#include "backend/cpu/int8_walk.h"

namespace simile::backend::cpu {

// Products must be a type of an unnamed namespace. Int8Walk explains Products and kOneTurn.
template <class Products>
struct EightLanes {
  // Loads four columns of eight rows of a group: `half` says which four of eight neighbouring
  // columns, `eight` whether the first or the last eight rows.
  template <bool kOneTurn>
  class Bytes {
   public:
    static constexpr std::size_t kInOneByte = 1;

    Bytes(const std::uint8_t* /*int4_bytes*/, const PieceTurn& turn) : turn_(turn) {}

    // Called before the loads of a step's 64 columns.
    void AtStep(const std::uint8_t* group, std::size_t step) const {
      if constexpr (kOneTurn) return;
      const std::uint8_t* ahead = group + turn_.piece_bytes + step * kGroupRows * 64;
      for (std::size_t line = turn_.from; line < turn_.to; ++line)
        _mm_prefetch(ahead + line * 64, _MM_HINT_T1);
    }
    __m256i Load(const std::uint8_t* group, std::size_t pair, std::size_t half,
                 std::size_t eight) const {
      const std::uint8_t* at = group + (pair * 2 + half) * 64;
      if (kOneTurn && eight == 0) _mm_prefetch(at + turn_.piece_bytes, _MM_HINT_T0);
      return _mm256_load_si256(reinterpret_cast<const __m256i*>(at + eight * 32));
    }

   private:
    PieceTurn turn_;
  };

  class Int4 {
   public:
    static constexpr std::size_t kInOneByte = 2;

    Int4(const std::uint8_t* int4_bytes, const PieceTurn& turn)
        : piece_bytes_(turn.piece_bytes),
          bytes_(_mm256_broadcastsi128_si256(
              _mm_loadu_si128(reinterpret_cast<const __m128i*>(int4_bytes)))) {}

    void AtStep(const std::uint8_t*, std::size_t) const {}
    __m256i Load(const std::uint8_t* group, std::size_t pair, std::size_t half,
                 std::size_t eight) const {
      const std::uint8_t* at = group + pair * 64;
      if (half == 0 && eight == 0) _mm_prefetch(at + piece_bytes_, _MM_HINT_T0);
      __m256i int4 = _mm256_load_si256(reinterpret_cast<const __m256i*>(at + eight * 32));
      if (half == 1) int4 = _mm256_srli_epi16(int4, 4);
      return _mm256_shuffle_epi8(bytes_, _mm256_and_si256(int4, _mm256_set1_epi8(15)));
    }

   private:
    std::size_t piece_bytes_;
    __m256i bytes_;
  };

  // Writes the sums of kQueries queries and one group. Returns the AND of all sums.
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

  // Only hits have sums that are not negative, so the AND of all sums has a clear sign bit if there
  // is a hit.
  static bool HasHit(__m256i all) { return ReadSigns(all) != 0xFF; }

  // Products::Append of Int8Walk.
  static void Append(const std::int32_t* sums, std::uint32_t first_pair, HitList& hits) {
    const auto* eights = reinterpret_cast<const __m256i*>(sums);
    const unsigned low = ReadSigns(_mm256_load_si256(eights));
    const unsigned high = ReadSigns(_mm256_load_si256(eights + 1));
    AppendBits((low | high << 8) ^ 0xFFFFU, sums, first_pair, hits);
  }

 private:
  static unsigned ReadSigns(__m256i eight) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(eight)));
  }
};

}  // namespace simile::backend::cpu

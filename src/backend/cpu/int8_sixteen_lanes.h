#pragma once

// How the kernels with registers of sixteen sums read codes. For files compiled with -mavx512bw:
// read the note in int8_kernel.h before including anything.

#include <immintrin.h>

#include "backend/cpu/int8_kernel.h"

namespace simile::backend::cpu {

// Four columns of sixteen rows, out of a group: those of half 0 or 1 of a pair of such fours.
// Products must be a type of an unnamed namespace; for it and kFirst see Int8Walk.
template <class Products, bool kFirst>
class SixteenLaneBytes {
 public:
  static constexpr std::size_t kInOneByte = 1;

  SixteenLaneBytes(const std::uint8_t* /*nibble_bytes*/, std::size_t piece_bytes)
      : piece_bytes_(piece_bytes) {}

  __m512i Load(const std::uint8_t* group, std::size_t pair, std::size_t half) const {
    const std::uint8_t* at = group + (pair * 2 + half) * 64;
    if constexpr (kFirst) __builtin_prefetch(at + piece_bytes_);
    return _mm512_load_si512(at);
  }

 private:
  std::size_t piece_bytes_;
};

template <class Products, bool kFirst>
class SixteenLaneNibbles {
 public:
  static constexpr std::size_t kInOneByte = 2;

  SixteenLaneNibbles(const std::uint8_t* nibble_bytes, std::size_t piece_bytes)
      : piece_bytes_(piece_bytes),
        // With a mask: GCC 12 takes the undefined register under the plain one for a mistake.
        bytes_(_mm512_maskz_broadcast_i32x4(
            0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(nibble_bytes)))) {}

  __m512i Load(const std::uint8_t* group, std::size_t pair, std::size_t half) const {
    const std::uint8_t* at = group + pair * 64;
    if (kFirst && half == 0) __builtin_prefetch(at + piece_bytes_);
    __m512i nibbles = _mm512_load_si512(at);
    if (half == 1) nibbles = _mm512_srli_epi16(nibbles, 4);
    return _mm512_shuffle_epi8(bytes_, _mm512_and_si512(nibbles, _mm512_set1_epi8(15)));
  }

 private:
  std::size_t piece_bytes_;
  __m512i bytes_;
};

}  // namespace simile::backend::cpu

#pragma once

#include <bit>
#include <compare>
#include <cstdint>

#include "simile/matrix_view.h"

namespace simile {

// A canonical score as it is ranked and reported: -0 becomes +0, everything else is unchanged.
constexpr float RankedScore(float canonical_sum) {
  return canonical_sum == 0.0F ? 0.0F : canonical_sum;
}

// The order of all hits, everywhere: higher canonical score first, ties to the lower row.
// Packed into an integer so that a heap or a sort compares one number; greater is better.
// The packing is total and reversible for every finite score.
class RankKey {
 public:
  constexpr RankKey() = default;
  // REQUIRES: score is not NaN. -0 ranks and reads back as +0.
  constexpr RankKey(float score, Row row)
      : packed_((static_cast<std::uint64_t>(Ordered(RankedScore(score))) << 32) |
                static_cast<std::uint32_t>(~row)) {}

  // The key with this packed() value.
  static constexpr RankKey FromPacked(std::uint64_t packed) {
    RankKey key;
    key.packed_ = packed;
    return key;
  }

  constexpr float score() const { return Unordered(static_cast<std::uint32_t>(packed_ >> 32)); }
  constexpr Row row() const { return ~static_cast<std::uint32_t>(packed_); }
  constexpr std::uint64_t packed() const { return packed_; }

  friend constexpr auto operator<=>(RankKey, RankKey) = default;

 private:
  // Maps floats to unsigned integers in the same order: inverts all bits of negative floats, and
  // sets the top bit of floats without a sign.
  static constexpr std::uint32_t Ordered(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  }
  static constexpr float Unordered(std::uint32_t ordered) {
    return std::bit_cast<float>((ordered & 0x80000000U) != 0 ? ordered & 0x7fffffffU : ~ordered);
  }

  std::uint64_t packed_ = 0;  // below every real key
};

}  // namespace simile

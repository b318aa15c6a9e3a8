#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/split_mix.h"

namespace simile::tests {

// Random numbers that are the same on every machine and library for the same seed (the standard's
// distributions are not).
class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Bits() { return base::NextSplitMix(state_); }
  // 0 .. bound - 1. REQUIRES: 1 <= bound <= 2^32.
  std::size_t Below(std::size_t bound) { return base::ScaleBelow(Bits(), bound); }
  // first .. last, both included.
  std::size_t Between(std::size_t first, std::size_t last) {
    return first + Below(last - first + 1);
  }
  bool OneIn(std::size_t n) { return Below(n) == 0; }
  // -1 .. 1, on a grid of 2^-23.
  float Signed() {
    return static_cast<float>(static_cast<std::int32_t>(Bits() >> 40)) * 0x1p-23F - 1;
  }
  // Full mantissa, either sign, magnitude between 2^lowest and 2^(highest + 1).
  float Wild(int lowest, int highest) {
    const auto mantissa = static_cast<float>(Bits() >> 40) * 0x1p-24F + 1;
    const int exponent =
        lowest + static_cast<int>(Below(static_cast<std::size_t>(highest - lowest) + 1));
    return std::ldexp((Bits() & 1) != 0 ? mantissa : -mantissa, exponent);
  }
  // A subnormal of either sign, any of its bits set.
  float Subnormal() {
    return std::bit_cast<float>(static_cast<std::uint32_t>(Bits()) & 0x807fffffU);
  }

 private:
  std::uint64_t state_;
};

}  // namespace simile::tests

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "base/split_mix.h"

namespace simile::cli::bench {

// Random numbers; the same seed gives the same numbers on every machine. Not thread-safe.
class RandomDraw {
 public:
  explicit RandomDraw(std::uint64_t seed) : state_(base::SplitMix(seed)) {}

  std::uint64_t Bits() { return base::NextSplitMix(state_); }
  // REQUIRES: 1 <= bound <= 2^32.
  std::size_t Below(std::size_t bound) { return base::ScaleBelow(Bits(), bound); }
  // Uniform in (0, 1]; never 0, so its logarithm is finite.
  double Uniform() { return (static_cast<double>(Bits() >> 11) + 1) * 0x1p-53; }
  // Normally distributed, mean 0, variance 1 (Box and Muller, 1958).
  double Normal() {
    const double length = std::sqrt(-2 * std::log(Uniform()));
    return length * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace simile::cli::bench

#pragma once

#include <cstddef>
#include <cstdint>

namespace emulated_cuda {

// Steele, Lea and Flood's SplitMix64: a few instructions a number, as a barrier asks for hundreds.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  // REQUIRES: 1 <= bound < 2^32.
  std::size_t Below(std::size_t bound) { return (Next() >> 32) * bound >> 32; }

  template <class Items>
  void Shuffle(Items& items, std::size_t count) {
    for (std::size_t i = count; i > 1; --i) {
      const std::size_t other = Below(i);
      auto kept = items[i - 1];
      items[i - 1] = items[other];
      items[other] = kept;
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace emulated_cuda

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/split_mix.h"

namespace emulated_cuda {

// SplitMix64: a few instructions per number, because a barrier needs hundreds.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(seed) {}

  std::uint64_t Next() { return simile::base::NextSplitMix(state_); }
  // REQUIRES: 1 <= bound < 2^32.
  std::size_t Below(std::size_t bound) { return simile::base::ScaleBelow(Next(), bound); }

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

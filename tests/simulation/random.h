#pragma once

#include <cstdint>

#include "emulated_cuda/random.h"

namespace simile::simulation {

// Numbers that follow from a seed.
class Random : public emulated_cuda::Random {
 public:
  using emulated_cuda::Random::Random;

  std::uint64_t Between(std::uint64_t least, std::uint64_t most) {
    return least + Below(most - least + 1);
  }
  bool OneIn(std::uint64_t count) { return Below(count) == 0; }
};

}  // namespace simile::simulation

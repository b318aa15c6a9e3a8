#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace simile::backend::cuda {

// What kernels and plans ask of a card.
struct CardTraits {
  std::string name;  // "NVIDIA H200"
  unsigned multiprocessors = 0;
  std::size_t shared_bytes_max = 0;  // of a block, opted in
  std::size_t l2_bytes = 0;
  std::uint64_t memory_bytes = 0;
  int capability = 0;  // 90 for sm_90

  bool copies_asynchronously() const { return capability >= 80; }
};

}  // namespace simile::backend::cuda

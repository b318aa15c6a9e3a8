#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace simile::backend::cuda {

// The properties of a card that kernels and plans depend on.
struct CardTraits {
  std::string name;  // "NVIDIA H200"
  unsigned multiprocessors = 0;
  std::size_t shared_bytes_max = 0;  // per block, with opt-in
  std::size_t l2_bytes = 0;
  std::uint64_t memory_bytes = 0;
  int capability = 0;  // 90 for sm_90
  // 80 where code for sm_80 runs on a later card; it decides which kernels there are.
  int code_capability = 0;
};

}  // namespace simile::backend::cuda

#pragma once

#include <cstdint>

#include "backend/cuda/kernel_variants.h"
#include "backend/gpu_memory.h"

namespace simile::backend::cuda {

// What passes are planned for: a card, and two segments whose times on it are known.

inline CardTraits H200() {
  CardTraits card;
  card.name = "NVIDIA H200";
  card.multiprocessors = 132;
  card.shared_bytes_max = 227 * 1024;
  card.l2_bytes = 62'914'560;
  card.memory_bytes = std::uint64_t{139} << 30;
  card.capability = card.code_capability = 90;
  return card;
}

inline constexpr SegmentSize kSentences{62'423, 384};
inline constexpr SegmentSize kMillion{1'000'000, 768};

}  // namespace simile::backend::cuda

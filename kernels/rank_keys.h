#pragma once

#include "kernels/device.h"
#include "kernels/pass.h"

// simile::RankKey in kernels, with the same packing.

namespace simile::kernels {

__device__ __forceinline__ unsigned OrderedBits(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// REQUIRES: score is not -0; row < 2^32 - 1, so that no key is 0.
__device__ __forceinline__ Key MakeKey(float score, unsigned row) {
  return static_cast<Key>(OrderedBits(score)) << 32 | static_cast<Key>(~row);
}

__device__ __forceinline__ float ScoreOf(Key key) {
  const auto ordered = static_cast<unsigned>(key >> 32);
  return __uint_as_float((ordered & 0x80000000U) != 0 ? ordered & 0x7fffffffU : ~ordered);
}

}  // namespace simile::kernels

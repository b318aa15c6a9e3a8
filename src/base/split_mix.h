#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace simile::base {

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
// 2014). Gives the same numbers on every machine; the distributions of <random> do not.

// Odd, so that the sequence visits every 64-bit number once.
inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15U;

// The mixing step: a bijection, so distinct numbers stay distinct.
constexpr std::uint64_t SplitMix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// Advances `state` and returns the next 64 bits of its sequence.
constexpr std::uint64_t NextSplitMix(std::uint64_t& state) {
  return SplitMix(state += kSplitMixStep);
}

// A number below `bound` from 64 random bits. REQUIRES: 1 <= bound <= 2^32.
constexpr std::size_t ScaleBelow(std::uint64_t bits, std::size_t bound) {
  return ((bits >> 32) * bound) >> 32;
}

// Shuffles (Fisher-Yates); the order depends only on how many items there are.
constexpr void Shuffle(std::span<std::uint32_t> items) {
  for (std::size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[ScaleBelow(SplitMix(left * kSplitMixStep), left)]);
  }
}

}  // namespace simile::base

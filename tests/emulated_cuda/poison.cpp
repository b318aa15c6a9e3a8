#include "emulated_cuda/poison.h"

#include <cstdint>
#include <cstring>

#include "emulated/execution.h"

namespace emulated_cuda {
namespace {

unsigned short pattern_in_use = static_cast<unsigned short>(PoisonPattern::kHuge);

// The pattern begins at even addresses, so that fp16 values read the same wherever an array begins.
unsigned char PatternByte(const unsigned char* at) {
  const unsigned shift = reinterpret_cast<std::uintptr_t>(at) % 2 == 0 ? 0 : 8;
  return static_cast<unsigned char>(pattern_in_use >> shift);
}

std::uint64_t PatternWord() { return pattern_in_use * std::uint64_t{0x0001000100010001}; }

}  // namespace

void SetPoisonPattern(PoisonPattern pattern) {
  pattern_in_use = static_cast<unsigned short>(pattern);
}

void Poison(void* to, std::size_t bytes) {
  auto* at = static_cast<unsigned char*>(to);
  unsigned char* const end = at + bytes;
  while (at < end && reinterpret_cast<std::uintptr_t>(at) % 8 != 0) {
    *at = PatternByte(at);
    ++at;
  }
  const std::uint64_t word = PatternWord();
  for (; end - at >= 8; at += 8) std::memcpy(at, &word, 8);
  for (; at < end; ++at) *at = PatternByte(at);
}

std::size_t FirstNotPoison(const void* at, std::size_t bytes) {
  const auto* const begin = static_cast<const unsigned char*>(at);
  std::size_t i = 0;
  const std::uint64_t word = PatternWord();
  while (i < bytes) {
    if (reinterpret_cast<std::uintptr_t>(begin + i) % 8 == 0 && bytes - i >= 8 &&
        std::memcmp(begin + i, &word, 8) == 0) {
      i += 8;
    } else if (begin[i] == PatternByte(begin + i)) {
      ++i;
    } else {
      return i;
    }
  }
  return bytes;
}

}  // namespace emulated_cuda

#include "service/request_id.h"

#include <algorithm>

#include <fmt/format.h>

namespace simile::service {
namespace {

// The finishing step of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, OOPSLA 2014): a bijection, so that distinct counters give distinct ids.
std::uint64_t Mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

bool IsUsableRequestId(std::string_view id) {
  return !id.empty() && id.size() <= kRequestIdBytesMax &&
         std::all_of(id.begin(), id.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string RequestIds::Next() {
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;  // odd: visits every number once
  return fmt::format("{:016x}", Mix(next_.fetch_add(kStep, std::memory_order_relaxed)));
}

}  // namespace simile::service

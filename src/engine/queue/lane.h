#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simile::engine {

// What work waits behind what. Every task is in one lane; the lanes share the device by weights
// (schedule.h).
enum class Lane : std::uint8_t {
  kPlain,  // answered by one search: leaves right after its pass
  kHard,   // several rounds of searches, every row, or comparisons of rows
  kBulk,   // asked for with a low priority, of either kind
};
inline constexpr std::size_t kLaneCount = 3;

// As metrics and `simile top` call them, in the order of the enum.
inline constexpr std::array<std::string_view, kLaneCount> kLaneNames = {"plain", "hard", "bulk"};

}  // namespace simile::engine

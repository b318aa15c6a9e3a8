#pragma once

#include <algorithm>
#include <span>

namespace simile {

// Whether a vector is all zeros (-0 is one), so that it has no direction.
inline bool IsZeroVector(std::span<const float> vector) {
  return std::ranges::all_of(vector, [](float value) { return value == 0; });
}

}  // namespace simile

#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "engine/query/query_request.h"

namespace simile::engine {

// A request's vector, which lives until the program ends.
inline VectorBytes Kept(std::vector<float> values) {
  static std::deque<std::vector<float>> kept;
  return {std::span<const float>(kept.emplace_back(std::move(values)))};
}

}  // namespace simile::engine

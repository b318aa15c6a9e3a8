#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "filter/payload_index.h"

namespace simile::filter {

// The values of a field, for users who choose a filter.
struct FieldSummary {
  struct Value {
    std::string text;
    std::uint64_t rows = 0;
  };
  std::uint64_t distinct_values = 0;
  std::vector<Value> most_common;  // of keywords and booleans, the most common first, then by text
  std::string least;               // of integers, numbers and times
  std::string greatest;
};

//   values_max  of most_common
// Cost: O(distinct values).
FieldSummary Summarize(const Field& field, std::size_t values_max);

}  // namespace simile::filter

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "filter/payload_index.h"

namespace simile::filter {

// What a field holds, for people who are about to filter by it.
struct FieldSummary {
  struct Value {
    std::string text;
    std::uint64_t rows = 0;
  };
  std::uint64_t distinct_values = 0;
  std::vector<Value> most_common;  // keywords and booleans; of equally common ones in text order
  std::string least;               // integers, numbers and times
  std::string greatest;
};

//   values_max  of most_common
// Cost: O(distinct values).
FieldSummary Summarize(const Field& field, std::size_t values_max);

}  // namespace simile::filter

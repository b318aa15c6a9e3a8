#pragma once

#include <cstdint>
#include <string_view>

namespace simile::data {

// What a load does with a row of zeros, which has no direction, where the metric is cosine. For dot
// it is a row like any other: it scores 0 with every vector.
enum class OnZeroRow : std::uint8_t {
  kRefuse,
  kSkip,  // keeps the row, which no search returns; see Dataset::skipped_rows
};

// What would be right instead of a row of zeros: the end of the error.
inline constexpr std::string_view kZeroRowAdvice =
    "a vector needs a direction; \"on_zero_row\": \"skip\" in collection.json leaves such rows out "
    "of every search";
inline constexpr std::string_view kZeroUserAdvice =
    "a preference needs a direction, and users are never skipped; leave the user out of this file "
    "and of the ids; a cold start answers users without a profile";

}  // namespace simile::data

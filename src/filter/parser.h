#pragma once

#include <string_view>

#include <absl/status/statusor.h>

#include "filter/expression.h"
#include "simile/limits.h"

namespace simile::filter {

inline constexpr std::size_t kFilterBytesMax = Limits{}.filter_bytes_max;
inline constexpr std::size_t kFilterDepthMax = 64;  // of parentheses and NOTs inside each other

// Parses a filter in the style of AIP-160; docs/filters.md describes the language.
// Errors: kInvalidArgument, `column N: ` with what was found, what was expected and, for the syntax
//         of other languages (&&, ==, LIKE, AND mixed with OR), the right way to write it. Columns
//         count characters (code points) from 1.
// Cost: O(size).
absl::StatusOr<Expression> Parse(std::string_view text);

}  // namespace simile::filter

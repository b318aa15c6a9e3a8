#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include <absl/status/statusor.h>

#include "filter/expression.h"

namespace simile::filter {

// A number as a filter writes it: whole where it can be.
using NumberLiteral = std::variant<std::int64_t, double>;

// What a literal means for a field of each type.
// Errors: kInvalidArgument, `column N: ` with what was found and what to write.
absl::StatusOr<NumberLiteral> NumberIn(const Literal& literal, const std::string& field);
absl::StatusOr<bool> BooleanIn(const Literal& literal, const std::string& field);
absl::StatusOr<std::int64_t> TimeIn(const Literal& literal,
                                    const std::string& field);  // as ParseTime

}  // namespace simile::filter

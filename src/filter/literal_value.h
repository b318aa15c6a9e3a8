#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include <absl/status/statusor.h>

#include "filter/expression.h"

namespace simile::filter {

// A number in a filter: an integer where it is written as one and fits.
using NumberLiteral = std::variant<std::int64_t, double>;

// The value of a literal for a field of each type; a time is as data::ParseTime returns it.
// Errors: kInvalidArgument, `column N: ` with what was found and what to write.
absl::StatusOr<NumberLiteral> NumberIn(const Literal& literal, const std::string& field);
absl::StatusOr<bool> BooleanIn(const Literal& literal, const std::string& field);
absl::StatusOr<std::int64_t> TimeIn(const Literal& literal, const std::string& field);

}  // namespace simile::filter

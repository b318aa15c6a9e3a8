#pragma once

#include <string_view>

#include <absl/status/statusor.h>

#include "data/id_index.h"
#include "filter/expression.h"
#include "filter/payload_index.h"
#include "simile/row_mask.h"

namespace simile::filter {

// What a filter is held against. Borrowed for the call.
struct FilterTarget {
  std::string_view collection;  // for messages
  const PayloadIndex& payload;
  const data::IdIndex& ids;
};

// The rows that pass; docs/filters.md says what each operator means for each type.
// Errors: kInvalidArgument, `column N: ` with what does not fit: a field that the collection does
//         not have (and the nearest it has), an operator or a value that is not for the field's
//         type, or conditions that together look at too many rows.
// Cost: set operations on bitmaps; `:` on a single keyword passes over the field's keywords.
// Bounded by a multiple of the rows.
absl::StatusOr<RowMask> Evaluate(const Expression& expression, const FilterTarget& target);

}  // namespace simile::filter

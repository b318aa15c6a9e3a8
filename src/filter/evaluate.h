#pragma once

#include <string_view>

#include <absl/status/statusor.h>

#include "data/id_index.h"
#include "filter/expression.h"
#include "filter/payload_index.h"
#include "simile/row_mask.h"

namespace simile::filter {

// The data that a filter is evaluated on. Borrowed for the call.
struct FilterTarget {
  std::string_view collection;  // for messages
  const PayloadIndex& payload;
  const data::IdIndex& ids;
};

// The rows that pass; docs/filters.md says what each operator means for each type.
// Errors: kInvalidArgument, `column N: ` and the reason: an unknown field (with the nearest known
//         one), an operator or a value that does not fit the field's type, or conditions that
//         together look at too many rows.
// Cost: set operations on bitmaps; `:` on a single keyword scans the field's distinct keywords.
//       Bounded by a multiple of the row count.
absl::StatusOr<RowMask> Evaluate(const Expression& expression, const FilterTarget& target);

}  // namespace simile::filter

#pragma once

#include <cstdint>
#include <string_view>

#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "data/payload/id_index.h"
#include "filter/expression.h"
#include "filter/payload_view.h"
#include "simile/row_mask.h"

namespace simile::filter {

// The data that a filter is evaluated on. Borrowed for the call.
struct FilterTarget {
  std::string_view collection;  // for messages
  PayloadView payload;
  const data::IdIndex& ids;
};

// Estimates how often evaluating an expression looks at a row or a keyword.
// Errors: kInvalidArgument, `column N: ` and the reason: an unknown field (with the nearest known
//         one), an operator or a value that does not fit the field's type.
// Cost: O(log) of each condition.
absl::StatusOr<std::uint64_t> EstimateLooks(const Expression& expression,
                                            const FilterTarget& target);

// The rows that pass; docs/filters.md says what each operator means for each type.
// Errors: EstimateLooks', and work's.
// Cost: set operations on bitmaps; `:` on a single keyword scans the field's distinct keywords.
absl::StatusOr<RowMask> Evaluate(const Expression& expression, const FilterTarget& target,
                                 base::LongWork& work);

}  // namespace simile::filter

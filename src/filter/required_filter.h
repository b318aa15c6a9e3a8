#pragma once

#include <absl/status/status.h>

#include "data/payload/payload_table.h"
#include "filter/expression.h"

namespace simile::filter {

// Whether an expression may separate the rows of callers. Each of its comparisons must compare
// whole values exactly. A comparison with a part of a text, or of folded texts, would show the rows
// of other callers: country:"DE" passes Sweden and Denmark.
// Errors: INVALID_FILTER for the first comparison that is not exact, `column N: ` with a comparison
//         that is.
// Cost: O(size).
absl::Status CheckRequiredFilter(const Expression& expression);

// Whether each field of the expression has a lasting meaning (data::FieldInfo). For the filters of
// an access file, which separate tenants for as long as the server runs.
// Errors: INVALID_FILTER for the first field without one, with the line that would declare its
// type. Cost: O(size * log fields).
absl::Status CheckStableFields(const Expression& expression, const data::PayloadTable& payload);

}  // namespace simile::filter

#pragma once

#include <absl/status/status.h>

#include "data/payload_table.h"
#include "filter/expression.h"

namespace simile::filter {

// Whether an expression may separate the rows of callers: each of its comparisons compares whole
// values exactly. A comparison with a part of a text, or one that takes different texts for equal,
// would show rows of others: country:"DE" passes Sweden and Denmark.
// Errors: INVALID_FILTER for the first comparison that is none of these, `column N: ` with what
//         would be right.
// Cost: O(size).
absl::Status CheckRequiredFilter(const Expression& expression);

// Whether each field that the expression asks has a lasting meaning (data::FieldInfo). For the
// filters of an access file, which separate tenants for as long as the server runs.
// Errors: INVALID_FILTER for the first field that is neither, with the line that declares its type.
// Cost: O(size * log fields).
absl::Status CheckStableFields(const Expression& expression, const data::PayloadTable& payload);

}  // namespace simile::filter

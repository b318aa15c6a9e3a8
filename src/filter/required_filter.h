#pragma once

#include <absl/status/status.h>

#include "filter/expression.h"

namespace simile::filter {

// Whether an expression may separate the rows of callers: each of its comparisons compares whole
// values exactly. A comparison with a part of a text, or one that takes different texts for equal,
// would show rows of others: country:"DE" passes Sweden and Denmark.
// Errors: INVALID_FILTER for the first comparison that is none of these, `column N: ` with what
//         would be right.
// Cost: O(size).
absl::Status CheckRequiredFilter(const Expression& expression);

}  // namespace simile::filter

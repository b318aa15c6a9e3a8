#pragma once

#include <cstddef>
#include <span>

#include <absl/status/statusor.h>

#include "engine/question.h"
#include "engine/snapshot.h"
#include "recommend/query_request.h"

namespace simile::recommend {

// The first `wanted` rows in the fallback's order that pass the mask (null: all) and are not
// excluded. Rows without a value come last, by row.
//   excluded  ascending
// Errors: kInvalidArgument for a field that does not exist or has no order, or when the collection
//         has nothing to tell the order by; the message names the fields that would do.
// Cost: a walk through the field's rows, at most all rows.
absl::StatusOr<engine::GivenRows> RowsByFallback(const engine::Snapshot& snapshot,
                                                 const Fallback& fallback, const RowMask* mask,
                                                 std::span<const Row> excluded, std::size_t wanted);

}  // namespace simile::recommend

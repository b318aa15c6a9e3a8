#pragma once

#include <absl/status/statusor.h>

#include "engine/row_order.h"
#include "engine/snapshot.h"
#include "recommend/query_request.h"

namespace simile::recommend {

// The order that a fallback asks for.
// Errors: kInvalidArgument for a field that does not exist or has no order, or when the collection
//         has nothing to tell the order by; the message names the fields that would do.
absl::StatusOr<engine::RowOrder> OrderOf(const engine::Snapshot& snapshot,
                                         const Fallback& fallback);

}  // namespace simile::recommend

#pragma once

#include <absl/status/statusor.h>

#include "engine/search/row_order.h"
#include "engine/snapshots/snapshot.h"
#include "query/query_request.h"

namespace simile::query {

// The order of rows that a cold start asks for.
// Errors: kInvalidArgument for a field that does not exist or has no order, or when the collection
//         has no such order by itself; the message names the fields that have one.
absl::StatusOr<engine::RowOrder> OrderOf(const engine::Snapshot& snapshot,
                                         const ColdStart& cold_start);

}  // namespace simile::query

#pragma once

#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "engine/search/row_order.h"
#include "engine/snapshots/snapshot.h"
#include "query/existing_items.h"
#include "query/query_request.h"

namespace simile::query {

// The order of rows that a cold start asks for. Its field is empty for the number of users who have
// seen a row.
//   existing  whose users are counted, and whose fields may be named
// Errors: UNKNOWN_PAYLOAD_FIELD; INVALID_FIELD for a field without an order, or when the collection
//         has no such order by itself. Messages name the fields that have one. Work's.
absl::StatusOr<engine::RowOrder> OrderOf(const engine::Snapshot& snapshot,
                                         const ColdStart& cold_start, const ExistingItems& existing,
                                         base::LongWork& work);

}  // namespace simile::query

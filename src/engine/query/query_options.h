#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "engine/query/existing_items.h"
#include "engine/query/query_request.h"
#include "engine/search/row_order.h"
#include "engine/snapshots/snapshot.h"
#include "filter/filters.h"
#include "filter/group_field.h"
#include "simile/query.h"
#include "simile/row_mask.h"

namespace simile::engine {

// The order of rows that a cold start asks for. Its field is empty for the number of users who have
// seen a row.
//   existing  whose users are counted, and whose fields may be named
// Errors: UNKNOWN_PAYLOAD_FIELD; INVALID_FIELD for a field without an order, or when the collection
//         has no such order by itself. Messages name the fields that have one. Work's.
absl::StatusOr<engine::RowOrder> MakeRowOrder(const engine::Snapshot& snapshot,
                                              const ColdStart& cold_start,
                                              const ExistingItems& existing, base::LongWork& work);

// Adds a sentence for each option of a query that can have no effect, whatever the collection's
// rows are. Pure.
//   cold  whether the query is answered by a cold start
void AddOptionNotes(const QueryRequest& request, Metric metric, bool cold,
                    std::vector<std::string>& notes);

// Counts the rows that a query may return but that are in no group, because they lack the field.
// Serves one call, whose queries mostly share mask and field. Borrows the snapshot and the masks.
class GroupedRows {
 public:
  explicit GroupedRows(const engine::Snapshot& snapshot) : snapshot_(snapshot) {}

  struct Counts {
    std::uint64_t rows = 0;           // that the query may return
    std::uint64_t without_group = 0;  // how many of these rows are in no group
  };
  //   name      of the field
  //   mask      null for all rows
  //   excluded  ascending
  // Errors: work's.
  // Cost: O(excluded) without a filter, except for the snapshot's first query with the field. With
  // a filter also a pass over the words of two masks, unless an earlier query of the call had both.
  absl::StatusOr<Counts> Count(std::string_view name, const filter::GroupField& field,
                               const RowMask* mask, std::span<const Row> excluded,
                               base::LongWork& work);

 private:
  // Counts as if no rows were excluded.
  absl::StatusOr<filter::GroupedRowCounts> CountPassing(std::string_view name, const RowMask* mask,
                                                        base::LongWork& work);

  const engine::Snapshot& snapshot_;
  std::map<std::pair<std::string_view, const RowMask*>, filter::GroupedRowCounts> known_;
};

}  // namespace simile::engine

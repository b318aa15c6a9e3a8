#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "base/long_work.h"
#include "engine/query/query_request.h"
#include "engine/snapshots/snapshot.h"
#include "service/replies/replies.h"
#include "service/requests/validate_search.h"
#include "simile/limits.h"
#include "simile/row_mask.h"

namespace simile::service {

// The note on with_rows, for a caller whose access has a required filter.
inline constexpr std::string_view kNoRowsText =
    "has no effect: callers with a required filter get no rows";

// What the notes of an answer depend on.
struct AnswerFacts {
  const ValidSearch& search;
  const Limits& limits;
  bool sees_all_rows = true;
  bool device_answered = false;  // the receipt has a device's own time
  bool has_next_page = false;
  const RowMask* unfiltered = nullptr;  // the rows of a query without a filter; null for all
  std::uint64_t row_count = 0;          // of the snapshot
};

// Adds the notes that need the answer. A page that is an answer gets a note when it has fewer hits
// than asked for, with the reason. It gets one when the pages end although more rows follow. The
// call gets notes on options that had no effect.
void AddAnswerNotes(const AnswerFacts& facts, std::vector<ResultPage>& pages,
                    std::vector<std::string>& notes);

// Adds hints to the notes of each page whose filter no row passes: which values of the filter may
// be misspelt.
// Errors: those of `work`, when the hints take too long. The pages are complete without hints.
absl::Status AddNearValues(const std::vector<engine::QueryRequest>& requests,
                           const engine::Snapshot& snapshot, base::LongWork& work,
                           std::vector<ResultPage>& pages);

}  // namespace simile::service

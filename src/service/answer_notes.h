#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "service/replies.h"
#include "service/validate_search.h"
#include "simile/limits.h"
#include "simile/row_mask.h"

namespace simile::service {

// Of with_rows, for a caller whose access has a required filter.
inline constexpr std::string_view kNoRowsText =
    "has no effect: callers with a required filter get no rows";

// What an answer is compared with to find what was cut.
struct AnswerFacts {
  const ValidSearch& search;
  const Limits& limits;
  bool sees_all_rows = true;
  bool device_answered = false;  // the receipt has a device's own time
  bool has_next_page = false;
  const RowMask* unfiltered = nullptr;  // the rows of a query without a filter; null for all
  std::uint64_t row_count = 0;          // of the snapshot
};

// Adds what is known once an answer is there. To the pages that are answers: that there are fewer
// hits than were asked for and why, and that the pages end although more rows follow. To the notes
// of the call: its options that had no effect.
void AddAnswerNotes(const AnswerFacts& facts, std::vector<ResultPage>& pages,
                    std::vector<std::string>& notes);

}  // namespace simile::service

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "filter/filters.h"
#include "filter/payload_index.h"
#include "simile/row_mask.h"

namespace simile::filter {

// A value of a field, or an element of its lists: a keyword, or a time as RFC 3339 text; an
// integer; a number; a boolean.
using SummaryValue = std::variant<std::string, std::int64_t, double, bool>;

// The values of a field, for users who choose a filter.
struct FieldSummary {
  struct Value {
    SummaryValue value;
    std::uint64_t rows = 0;
  };
  std::uint64_t distinct_values = 0;
  std::vector<Value> most_common;  // of keywords and booleans, the most common first, then by text
  std::optional<SummaryValue> least;  // of integers, numbers and times
  std::optional<SummaryValue> greatest;
};

//   values_max  of most_common
// Errors: work's. Cost: O(distinct values * log values_max).
absl::StatusOr<FieldSummary> Summarize(const Field& field, std::size_t values_max,
                                       base::LongWork& work);

// As Summarize, but of some rows alone: every figure and every value is of these rows.
//   rows  of the collection
// Errors: work's. Cost: a decode of each row for keywords; for other types a pass over the column.
absl::StatusOr<FieldSummary> SummarizeRows(const Filters& filters, const Field& field,
                                           const RowMask& rows, std::size_t values_max,
                                           base::LongWork& work);

}  // namespace simile::filter

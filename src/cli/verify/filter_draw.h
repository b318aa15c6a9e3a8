#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verify/check_answer.h"

namespace simile::cli {

class SampleDraw;

// A filter and the rows that pass it, found by comparing every row's payload with what the filter
// was made from: neither the filter's parser nor its evaluator has a part in it.
struct DrawnFilter {
  std::string text = {};
  std::vector<bool> passes;  // [row_count]
};
// One or two conditions on fields of the payload, joined by AND, OR or negated; some row passes
// each. Nothing when no field has values that filters compare.
std::optional<DrawnFilter> DrawFilter(SampleDraw& draw);

// A field of keywords: its name, and the rows of each keyword. Nothing when there is none.
struct KeywordFieldRows {
  std::string field;
  std::vector<KeywordRows> keywords = {};
};
std::optional<KeywordFieldRows> DrawKeywordField(SampleDraw& draw);

// A field of integers or numbers: its name, and all rows by descending value, then by row; rows
// without a value last. Nothing when there is none.
struct OrderedRows {
  std::string field;
  std::vector<Row> rows = {};
};
std::optional<OrderedRows> DrawOrderedField(SampleDraw& draw);

}  // namespace simile::cli

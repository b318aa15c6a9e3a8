#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verify/check_answer.h"

namespace simile::cli {

class SampleDraw;

// A filter and the rows that pass it, found by comparing every row's payload with what the filter
// was made from (filter_meaning.h): no code of the server's filters has a part in it.
struct DrawnFilter {
  std::string text = {};
  std::vector<bool> passes;  // [row_count]
};
// One or two conditions on fields of the payload, joined by AND, OR or negated. Some spell a text
// as no row may do, which finds a server that folds where it must compare bytes. Nothing when no
// field has values that filters compare, or what they mean is not known.
//   required  without `:`, which a required filter may not have
std::optional<DrawnFilter> DrawFilter(SampleDraw& draw, bool required = false);

// A field of keywords: its name, and the rows of each keyword. Nothing when there is none in which
// every value tells its keywords: a separator, which is not on the wire, may divide a text in a
// field of lists.
struct KeywordFieldRows {
  std::string field;
  std::vector<KeywordRows> keywords = {};
};
std::optional<KeywordFieldRows> DrawKeywordField(SampleDraw& draw);

// A field of integers or numbers: its name, and all rows by descending value, then by row; rows
// without a value that fits last. Nothing when there is none.
struct OrderedRows {
  std::string field;
  std::vector<Row> rows = {};
};
std::optional<OrderedRows> DrawOrderedField(SampleDraw& draw);

}  // namespace simile::cli

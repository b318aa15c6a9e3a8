#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verify/check_answer.h"
#include "simile/payload.h"
#include "simile/v1/collections.pb.h"

// Filters to ask with, and what they mean. Written a second time, from docs/filters.md, because
// `verify` must not share the code that it checks.
namespace simile::cli {

// Whether one value passes a condition of a filter.
enum class Passing : std::uint8_t {
  kYes,
  kNo,       // also a row without the field: that row passes the condition's NOT
  kNeither,  // the value does not fit the field's type: neither the condition nor its NOT passes
  kUnknown,  // the reply does not say enough to decide
};

// What NOT makes of the result of a condition.
Passing Negated(Passing passing);

// Whether the value is the wanted text, or a list with the wanted text as an element. Texts are
// equal byte for byte. The reply does not tell the separators of a field of lists: where one could
// cut the wanted text out of the value, the result is kUnknown.
//   type  FIELD_TYPE_KEYWORD or FIELD_TYPE_KEYWORD_LIST
Passing EqualsText(v1::FieldType type, const PayloadValue& value, std::string_view wanted);

// The texts by which a row is grouped, in the order of the value. Empty for a value that is missing
// or does not fit the type; nothing where EqualsText could be kUnknown.
std::optional<std::vector<std::string>> GroupTexts(v1::FieldType type, const PayloadValue& value);

// Text as `:` compares it, for text whose folding cannot be disputed: printable ASCII with single
// spaces inside. Nothing for any other.
std::optional<std::string> AsciiFolded(std::string_view text);

// `field:"..."`: whether the text contains this part, or the list has this element, both folded.
// kUnknown where a text that decides has no AsciiFolded.
//   wanted  as AsciiFolded returns it, not empty
Passing HasText(v1::FieldType type, const PayloadValue& value, std::string_view wanted);

// Wide enough for every integer and every double.
using WideNumber = long double;

// The number of a value that fits the type, FIELD_TYPE_INTEGER or FIELD_TYPE_NUMBER.
std::optional<WideNumber> ToWideNumber(v1::FieldType type, const PayloadValue& value);

struct NumberComparison {
  std::string_view symbol;
  bool below = false;  // whether a value below the bound passes
  bool equal = false;
  bool above = false;
};
std::span<const NumberComparison> NumberComparisons();

Passing Compares(v1::FieldType type, const PayloadValue& value, const NumberComparison& comparison,
                 WideNumber bound);

class SampleDraw;

// A filter and the rows that pass it, found by comparing every row's payload with what the filter
// was made from: no code of the server's filters has a part in it.
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

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

// Draws filters and finds the rows that pass them. Implements docs/filters.md a second time,
// because `verify` must not share the code that it checks.
namespace simile::cli {

// Whether one value passes a condition of a filter.
enum class Passing : std::uint8_t {
  kYes,
  kNo,       // also for a row without the field; such a row passes the condition's NOT
  kNeither,  // the value does not fit the field's type: neither the condition nor its NOT passes
  kUnknown,  // the reply does not say enough to decide
};

// The result of a condition's NOT, from the condition's result.
Passing Negated(Passing passing);

// Whether the value is the wanted text, or a list with the wanted text as an element. Texts are
// compared byte for byte. The reply does not contain the separators of a field of lists. If a
// separator could cut the wanted text out of the value, the result is kUnknown.
//   type  FIELD_TYPE_KEYWORD or FIELD_TYPE_KEYWORD_LIST
Passing EqualsText(v1::FieldType type, const PayloadValue& value, std::string_view wanted);

// The texts by which a row is grouped, in the order of the value. Empty if the value is missing or
// does not fit the type. Nothing if EqualsText could be kUnknown.
std::optional<std::vector<std::string>> GroupTexts(v1::FieldType type, const PayloadValue& value);

// Folds a text as `:` compares it, if the folding is beyond doubt: printable ASCII with single
// spaces inside. Nothing for any other text.
std::optional<std::string> AsciiFolded(std::string_view text);

// `field:"..."`: whether the folded text contains `wanted`, or the list has an element that folds
// to it. kUnknown if a text that decides cannot be folded by AsciiFolded.
//   wanted  a result of AsciiFolded, not empty
Passing HasText(v1::FieldType type, const PayloadValue& value, std::string_view wanted);

// Wide enough for every integer and every double.
using WideNumber = long double;

// The value's number, if it fits the type, which is FIELD_TYPE_INTEGER or FIELD_TYPE_NUMBER.
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

// A filter and the rows that pass it. The rows are found by comparing every row's payload with the
// values in the filter, without the server's filter code.
struct DrawnFilter {
  std::string text = {};
  std::vector<bool> passes;  // [row_count]
};
// Draws one or two conditions on payload fields, joined by AND or OR, some negated. Some change the
// spelling of a text, to find a server that folds texts where it must compare bytes. Nothing if no
// field has values that filters compare, or if the meaning of a condition is unknown.
//   required  draws no `:`, which a required filter must not contain
std::optional<DrawnFilter> DrawFilter(SampleDraw& draw, bool required = false);

// A field of keywords: its name, and the rows of each keyword. Nothing if there is no field whose
// every value leaves its keywords certain. In a field of lists a separator, which the wire does not
// contain, may divide a text.
struct KeywordFieldRows {
  std::string field;
  std::vector<KeywordRows> keywords = {};
};
std::optional<KeywordFieldRows> DrawKeywordField(SampleDraw& draw);

// A field of integers or numbers: its name, and all rows by descending value, then by row. Rows
// without a fitting value come last. Nothing if there is no such field.
struct OrderedRows {
  std::string field;
  std::vector<Row> rows = {};
};
std::optional<OrderedRows> DrawOrderedField(SampleDraw& draw);

}  // namespace simile::cli

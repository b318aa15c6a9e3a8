#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simile/payload.h"
#include "simile/v1/collections.pb.h"

// Whether one value passes a condition of a filter. Written a second time, from docs/filters.md,
// because `verify` must not share the code that it checks.
namespace simile::cli {

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
std::optional<WideNumber> NumberOf(v1::FieldType type, const PayloadValue& value);

struct NumberComparison {
  std::string_view symbol;
  bool below = false;  // whether a value below the bound passes
  bool equal = false;
  bool above = false;
};
std::span<const NumberComparison> NumberComparisons();

Passing Compares(v1::FieldType type, const PayloadValue& value, const NumberComparison& comparison,
                 WideNumber bound);

}  // namespace simile::cli

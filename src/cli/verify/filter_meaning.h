#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simile/payload.h"
#include "simile/v1/collections.pb.h"

// What a condition of a filter says of one value, written down again from docs/filters.md: `verify`
// must not share the code that it checks.
namespace simile::cli {

enum class Passing : std::uint8_t {
  kYes,
  kNo,       // also a missing field: its row passes the condition's NOT
  kNeither,  // the value does not fit its field's type: it passes neither the condition nor its NOT
  kUnknown,  // the field's type and the value do not tell
};

// Of the NOT of a condition.
Passing Negated(Passing passing);

// Whether the value is this text, or a list with this element, byte for byte. A text in a field of
// lists is kUnknown where a separator, which is not on the wire, could cut this text out of it.
//   type  FIELD_TYPE_KEYWORD or FIELD_TYPE_KEYWORD_LIST
Passing EqualsText(v1::FieldType type, const PayloadValue& value, std::string_view wanted);

// The texts by which a row is grouped, in the order of the value: none for a value that is missing
// or does not fit, nothing where EqualsText could be kUnknown.
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

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "simile/payload.h"

namespace simile::data {

// The type of a payload field in filters.
enum class FieldType : std::uint8_t {
  kKeyword,   // one text
  kKeywords,  // a list of texts, or one text
  kInteger,   // 12.0 is the integer 12
  kIntegers,  // a list of integers, or one integer
  kNumber,
  kNumbers,  // a list of numbers, or one number
  kBoolean,
  kBooleans,  // a list of booleans, or one boolean
  kTime,      // texts that ParseTime reads (time_value.h)
  kOther,     // objects, other lists, values of several types: filters can only test their presence
};

// A type that collection.json gives to a field.
struct NamedFieldType {
  std::string field;
  FieldType type = FieldType::kOther;

  friend bool operator==(const NamedFieldType&, const NamedFieldType&) = default;
};

// As messages, listings and collection.json name it: "list of keywords".
std::string_view NameOf(FieldType type);
// The type of this name.
std::optional<FieldType> FieldTypeOf(std::string_view name);
// All names, in the order of the types.
std::span<const std::string_view> FieldTypeNames();

// Whether values of the type are lists.
bool IsList(FieldType type);
// The type of the elements of a list; any other type itself.
FieldType TypeOfElements(FieldType type);

// What one value of a field is.
enum class ValueKind : std::uint8_t {
  kBoolean,
  kWhole,      // an integer, or a number without a fraction that is one, such as 12.0
  kFraction,   // any other number
  kTime,       // a text that is a time
  kLocalTime,  // a text that is a time without a zone, which is read as UTC
  kText,       // any other text
  kTexts,      // a list of texts
  kWholes,     // a list of values that are kWhole
  kFractions,  // a list of numbers of which some is kFraction
  kBooleans,   // a list of booleans
  kEmptyList,
  kObject,
  kObjects,  // a list of objects
  kOther,    // any other list
};
inline constexpr std::size_t kValueKindCount = 14;

// REQUIRES: not null.
ValueKind KindOf(const PayloadValue& value);
// Whether filters on a field of the type read values of the kind.
bool Fits(FieldType type, ValueKind kind);
// The integer that a value of the kind kWhole is: 12 also of 12.0. Nothing for any other value.
std::optional<std::int64_t> WholeOf(const PayloadValue& value);

}  // namespace simile::data

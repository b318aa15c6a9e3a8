#pragma once

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
  kKeywords,  // a list of texts, or a text like "A|B|C"
  kInteger,
  kNumber,
  kBoolean,
  kTime,   // RFC 3339 texts
  kOther,  // objects, other lists, values of several types: filters can only test their presence
};

// A type given to a field.
struct NamedFieldType {
  std::string field;
  FieldType type = FieldType::kOther;

  friend bool operator==(const NamedFieldType&, const NamedFieldType&) = default;
};

// As messages, listings and collection.json name it: "list of keywords".
std::string_view NameOf(FieldType type);
// The type of this name.
std::optional<FieldType> FieldTypeOf(std::string_view name);
// Whether a value is of the type; null is of every type.
bool Fits(FieldType type, const PayloadValue& value);
// All names, in the order of the types.
std::span<const std::string_view> FieldTypeNames();

}  // namespace simile::data

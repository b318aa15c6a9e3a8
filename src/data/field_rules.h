#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "data/field_type.h"
#include "data/payload_table.h"

namespace simile::data {

// The text that separates the keywords of a field's texts: "|" in "Drama|War".
struct NamedSeparator {
  std::string field;
  std::string separator;

  friend bool operator==(const NamedSeparator&, const NamedSeparator&) = default;
};

// The types of the generation that is served, which a load in its place keeps, so that filters
// which callers saved mean the same.
struct KeptTypes {
  std::vector<NamedFieldType> types;
  // Whether a field may change its type when most of its values do not fit the kept one.
  bool may_change = false;
};

// What decides the types of a payload's fields: collection.json first, then the kept types, then
// the values (FieldValues::Guess).
struct FieldRules {
  std::vector<NamedFieldType> declared;    // in collection.json
  std::vector<NamedSeparator> separators;  // likewise; these fields are lists of keywords
  KeptTypes kept;
};

// Sets type, is_declared and separator of each field, and adds a sentence about each field with
// values that do not fit, and about each that its owner may have meant otherwise: of the first few
// fields, by name.
//   file    the payload's display name, for messages
//   fields  whose values are all counted
// Errors: kInvalidArgument when most values of a field do not fit its declared type;
//         SHAPE_CHANGE when most do not fit its kept type, unless that may change.
absl::Status ChooseFieldTypes(const FieldRules& rules, std::string_view file,
                              std::span<FieldInfo> fields, std::vector<std::string>& notes);

}  // namespace simile::data

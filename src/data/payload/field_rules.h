#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "data/payload/field_type.h"

namespace simile::data {

// A payload field after a load.
struct FieldInfo {
  std::string name;        // of a member of an object: `meta.year`
  bool is_nested = false;  // a member of an object, not of rows
  FieldValues values;      // of all rows
  FieldType type = FieldType::kOther;
  // Whether a first load of the same files would choose another type or separator. Then those of
  // the served generation were kept.
  bool is_kept_otherwise = false;
  // Whether filters on the field keep their meaning whatever values a later load brings. True when
  // its type is declared, or when its values had one reading at the load that chose the type.
  bool has_lasting_meaning = false;
  std::string separator;  // separates the keywords of a text; empty: a text is one keyword
};

// The text that separates the keywords of a field's texts: "|" in "Drama|War".
struct NamedSeparator {
  std::string field;
  std::string separator;

  friend bool operator==(const NamedSeparator&, const NamedSeparator&) = default;
};

// The field types of the served generation. A reload keeps them, so that saved filters mean the
// same.
struct KeptType {
  std::string field;
  FieldType type = FieldType::kOther;
  std::string separator;             // FieldInfo's
  bool has_lasting_meaning = false;  // FieldInfo's
};
struct KeptTypes {
  std::vector<KeptType> types;
  // Whether a field may change its type when most of its values do not fit the kept one.
  bool may_change = false;
};

// What decides the types of a payload's fields: collection.json first, then the kept types, then
// the values (FieldValues::Guess).
struct FieldRules {
  std::vector<NamedFieldType> declared;    // in collection.json
  std::vector<NamedSeparator> separators;  // in collection.json; these fields are lists of keywords
  KeptTypes kept;
};

// Sets type, separator and the flags of each field. Adds a note about values that do not fit, and
// about types that the owner may not expect. At most 16 notes, by field name, then their number.
//   file    the payload's display name, for messages
//   fields  whose values are all counted
// Errors: kInvalidArgument when most values of a field do not fit its declared type;
//         SHAPE_CHANGE when most do not fit its kept type, unless that may change.
absl::Status ChooseFieldTypes(const FieldRules& rules, std::string_view file,
                              std::span<FieldInfo> fields, std::vector<std::string>& notes);

}  // namespace simile::data

#pragma once

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simile/v1/types.pb.h"

namespace simile::cli {

// The name of the ids in tables and in --fields.
inline constexpr const char* kIdField = "id";

using PayloadMap = google::protobuf::Map<std::string, v1::PayloadValue>;

// A payload value for people: text unchanged, lists as `a, b`, objects as `{key: value}` sorted by
// key, null as an empty text.
std::string ValueText(const v1::PayloadValue& value);

// The field's text; empty if the payload lacks the field.
std::string FieldText(const PayloadMap& payload, const std::string& field);

// The same for a table cell. A long list shows its first values and how many more there are.
std::string CellText(const PayloadMap& payload, const std::string& field);

// The fields that a table shows without --fields: title or name, year, and one list. The list is
// genres if it is present, otherwise the first list by name. Without a title or name, up to three
// fields, filled up by name.
//   present  the fields that any row has
//   lists    the present fields that hold a list of texts
std::vector<std::string> TableFields(const std::set<std::string>& present,
                                     const std::set<std::string>& lists);

// A row's name in messages: `Toy Story (1995)` when its payload has a title or a name, else its id.
std::string RowLabel(const PayloadMap& payload, const std::string& id);

// A payload value as the JSON it was loaded from; null if it is not set.
nlohmann::ordered_json PayloadValueJson(const v1::PayloadValue& value);

// A row's payload as an object, its fields sorted by name.
nlohmann::ordered_json PayloadJson(const PayloadMap& payload);

}  // namespace simile::cli

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

// A payload value for people: text unchanged, lists as `a, b`, objects as `{key: value}` by key,
// empty for null.
std::string ValueText(const v1::PayloadValue& value);

// The field's text, empty when the payload lacks it.
std::string FieldText(const PayloadMap& payload, const std::string& field);

// The same for a cell of a table: of a long list the first values, and how many more there are.
std::string CellText(const PayloadMap& payload, const std::string& field);

// The fields that a table shows when nobody chose any: title or name, year, and a list, which is
// genres if that is there and else the first list by name. Without a title, up to three fields,
// the others by name.
//   present  the fields that any row has
//   lists    those of them that hold a list of texts
std::vector<std::string> TableFields(const std::set<std::string>& present,
                                     const std::set<std::string>& lists);

// A row's name in messages: `Toy Story (1995)` when its payload has a title or a name, else its id.
std::string RowLabel(const PayloadMap& payload, const std::string& id);

// A payload value as the JSON it was loaded from; null for one that is not set.
nlohmann::ordered_json PayloadValueJson(const v1::PayloadValue& value);

// A row's payload as an object, its fields sorted by name.
nlohmann::ordered_json PayloadJson(const PayloadMap& payload);

}  // namespace simile::cli

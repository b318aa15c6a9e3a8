#pragma once

#include <string>

#include "simile/v1/types.pb.h"

namespace simile::cli {

using PayloadMap = google::protobuf::Map<std::string, v1::Value>;

// A payload value for people: text unchanged, lists as `a, b`, objects as `{key: value}` by key,
// empty for null.
std::string ValueText(const v1::Value& value);

// The field's text, empty when the payload lacks it.
std::string FieldText(const PayloadMap& payload, const std::string& field);

// A row's name in messages: `Toy Story (1995)` when its payload has a title, else its id.
std::string RowLabel(const PayloadMap& payload, const std::string& id);

}  // namespace simile::cli

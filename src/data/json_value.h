#pragma once

#include <cstddef>
#include <string_view>

#include <absl/status/statusor.h>

#include "data/json_reader.h"
#include "simile/payload.h"

namespace simile::data {

// Reads one JSON object, the whole input of the reader, with names in their order.
// Errors: kInvalidArgument with file, line and column: syntax, a name twice in one object,
//         something other than an object.
absl::StatusOr<PayloadObject> ReadJsonObject(JsonReader& reader);

// The value of a name, or nullptr. Cost: linear.
const PayloadValue* FindMember(const PayloadObject& object, std::string_view name);

// The value of a field, or nullptr: a member of this name, or else the member of an object that the
// name leads to, as meta.id does.
const PayloadValue* FindField(const PayloadObject& object, std::string_view name);

// The name of a value's type in messages: "a string", "a list", "null".
std::string_view Describe(const PayloadValue& value);

}  // namespace simile::data

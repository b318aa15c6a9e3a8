#pragma once

#include <string_view>

#include <absl/status/status.h>

#include "service/field_path.h"
#include "simile/limits.h"

namespace simile::service {

// Checks a collection's name: 1 to limits.collection_name_bytes_max letters, digits, '-', '_' and
// '.', not starting with '.', since it is also a metric label and a health service name; and not
// kLivenessName.
//   field  names it in the error: "collection"
// Errors: INVALID_FIELD.
absl::Status CheckCollectionName(const FieldPath& field, std::string_view name,
                                 const Limits& limits);

}  // namespace simile::service

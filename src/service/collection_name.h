#pragma once

#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "simile/limits.h"

namespace simile::service {

// Whether a name can be a collection's: 1 to limits.collection_name_bytes_max of letters, digits,
// '-', '_' and '.', not starting with '.'. It becomes a metric label, a health service name and a
// word in messages.
//   field  what the message calls it: "collection", "name"
// Errors: kInvalidArgument.
absl::Status CheckCollectionName(std::string_view field, std::string_view name,
                                 const Limits& limits);

}  // namespace simile::service

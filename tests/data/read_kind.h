#pragma once

#include <string_view>

#include <absl/status/status.h>

#include "data/byte_source.h"

namespace simile::data {

// Reads a source whole as a load would, by itself, and says how that went. Interactions are read
// against the users u1, u2 and the items a, b.
//   kind  as the corpus's folders are called: npy, safetensors, jsonl, ids, interactions,
//         collection_json
// REQUIRES: for vectors, the shown name has the kind's ending.
absl::Status ReadKind(std::string_view kind, ByteSource& source);

}  // namespace simile::data

#pragma once

#include <string_view>

#include <absl/status/status.h>

#include "data/formats/byte_source.h"

namespace simile::data {

// Reads a whole source as a load does, by itself, and returns the status. Interactions are read
// with the users u1, u2 and the items a, b.
//   kind  the name of a folder of the corpus: npy, safetensors, jsonl, ids, interactions,
//         collection_json
// REQUIRES: for vectors, the display name has the kind's ending.
absl::Status ReadKind(std::string_view kind, ByteSource& source);

}  // namespace simile::data

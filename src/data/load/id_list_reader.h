#pragma once

#include <optional>

#include <absl/status/statusor.h>

#include "data/formats/buffered_reader.h"
#include "data/payload/id_index.h"
#include "data/payload/payload_reader.h"
#include "simile/limits.h"

namespace simile::data {

// Reads user_ids.json: a JSON list of ids in row order, or an object with exactly one list in it
// ({"user_ids": [...]}; plain values beside it are ignored). Ids are strings or integers.
// Streams: needs no memory but the index.
//   expected  when given, the number of ids that the file must have; reading stops at one id more
// Errors: kInvalidArgument beginning with the file's name, saying line and column or row.
absl::StatusOr<IdIndex> ReadIdList(BufferedReader& in, const std::optional<ExpectedRows>& expected,
                                   const Limits& limits);

}  // namespace simile::data

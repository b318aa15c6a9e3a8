#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/id_index.h"
#include "data/payload_table.h"
#include "simile/limits.h"

namespace simile::data {

// How many rows a file must describe, and the file that determines it.
struct ExpectedRows {
  std::uint64_t count = 0;
  std::string said_by;  // display name of the vectors
};

struct PayloadFile {
  PayloadTable table;
  IdIndex ids;
  std::string id_field;  // the field of the ids; empty: ids are row numbers
};

// Reads metadata.jsonl: an object a line in row order, and each row's id.
//   id_field  the field of ids; empty: `id` or else `media_id` if line 1 has it, or else ids are
//             row numbers
//   expected  when given, the file must have exactly that many lines; reading stops at one more
// Errors: kInvalidArgument beginning with the file's name and line.
absl::StatusOr<PayloadFile> ReadPayload(BufferedReader& in, const std::string& id_field,
                                        const std::optional<ExpectedRows>& expected,
                                        const Limits& limits);

}  // namespace simile::data

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "data/formats/buffered_reader.h"
#include "data/payload/field_rules.h"
#include "data/payload/id_index.h"
#include "data/payload/payload_table.h"
#include "simile/limits.h"

namespace simile::data {

// How many rows a file must describe, and the file that determines it.
struct ExpectedRows {
  std::uint64_t count = 0;
  std::string said_by;    // display name of the vectors
  std::uint64_t dim = 0;  // of the vectors

  // Why a file that describes `found` rows does not fit: `content_vectors.npy has 2 rows`. Where
  // the vectors have `found` dimensions, it also says that the vectors look transposed.
  std::string WhyNot(std::uint64_t found) const;
};

// How metadata.jsonl is read.
struct PayloadRules {
  // The field of ids; empty: FindIdField chooses it.
  std::string id_field;
  // When given, the file must have exactly that many lines; lines beyond it are only counted.
  std::optional<ExpectedRows> expected;
  FieldRules fields;
  Keep keep = Keep::kRows;
};

struct PayloadFile {
  PayloadTable table;  // without rows if none were to be kept
  IdIndex ids;
  std::string id_field;  // the field of the ids; empty: ids are row numbers
  // MissedIdField's, then of blank lines, then ChooseFieldTypes'.
  std::vector<std::string> notes;
};

// Reads metadata.jsonl: an object a line in row order, and each row's id.
// Errors: kInvalidArgument beginning with the file's name and line, or naming the first ten faults
//         (FaultList); ChooseFieldTypes'.
absl::StatusOr<PayloadFile> ReadPayload(BufferedReader& in, const PayloadRules& rules,
                                        const Limits& limits);

}  // namespace simile::data

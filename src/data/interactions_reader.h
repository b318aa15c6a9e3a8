#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "data/buffered_reader.h"
#include "data/id_index.h"
#include "data/jsonl_reader.h"
#include "data/keep.h"
#include "data/seen_sets.h"
#include "simile/limits.h"

namespace simile::data {

// One line of interactions.jsonl.
struct Interaction {
  std::string user_id;
  std::string item_id;
};

// Reads interactions.jsonl line by line: `user_id`; the item under the collection's id field or one
// of `media_id`, `item_id`, `id`; and, checked when present, `weight` (a number) and `time` (RFC
// 3339, or whole seconds since 1970). Other fields are ignored. Borrows the reader.
class InteractionsReader {
 public:
  //   id_field  the payload field of ids, empty when they are row numbers
  InteractionsReader(BufferedReader& in, const std::string& id_field, const Limits& limits);

  // False at the end of the file.
  // Errors: kInvalidArgument beginning with file and line, saying what would be right.
  absl::StatusOr<bool> Next(Interaction& interaction);
  std::uint64_t line() const { return lines_.line(); }

 private:
  std::string Needed() const;  // the members that every line has
  absl::StatusOr<std::string> ReadId(const PayloadObject& object, std::string_view field) const;
  absl::Status CheckWeight(const PayloadObject& object) const;
  absl::Status CheckTime(const PayloadObject& object) const;

  const Limits& limits_;
  JsonlReader lines_;
  std::vector<std::string> item_fields_;
};

struct Interactions {
  SeenSets seen;
  // One sentence each about lines that name users or items the collection does not have. Such lines
  // are left out, because logs and catalogues are exported at different times.
  std::vector<std::string> notes;
  bool all_unknown = false;  // there are lines, and none of them is used
};

//   keep  kNothing: the same checks and notes, without seen sets
absl::StatusOr<Interactions> ReadInteractions(BufferedReader& in, const IdIndex& users,
                                              const IdIndex& items, const std::string& id_field,
                                              Keep keep, const Limits& limits);

}  // namespace simile::data

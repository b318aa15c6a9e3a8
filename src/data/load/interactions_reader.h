#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "data/formats/buffered_reader.h"
#include "data/formats/jsonl_reader.h"
#include "data/payload/id_index.h"
#include "data/seen_sets.h"
#include "simile/limits.h"

namespace simile::data {

// One line of interactions.jsonl.
struct Interaction {
  std::string user_id;  // empty: of nobody
  std::string item_id;
};

// Reads interactions.jsonl line by line: the user under `user_id`, null or "" for nobody, and the
// item under the collection's id field or one of `media_id`, `item_id`, `id`. Other fields, such as
// `weight` and `time`, are not used and not checked. Borrows the reader.
class InteractionsReader {
 public:
  //   id_field  the payload field of ids, empty when they are row numbers
  InteractionsReader(BufferedReader& in, const std::string& id_field, const Limits& limits);

  // False at the end of the file.
  // Errors: kInvalidArgument beginning with file and line, saying what would be right; then, if
  // lines() can go on, the next call reads the next line.
  absl::StatusOr<bool> Next(Interaction& interaction);
  // Reads the file to its end.
  //   each  called with every line, unless an earlier one has a fault
  // Errors: Next's, all faults of the content together (FaultList).
  absl::Status ReadAll(const std::function<void(const Interaction&)>& each);
  const JsonlReader& lines() const { return lines_; }
  // `no line has "user_id"; line 1 has "user", "recipe_id"`. Empty when some line has it, be it
  // null, or when there is no line.
  std::string NoUsersText() const;

 private:
  std::string Needed() const;  // the members that every line has
  absl::StatusOr<std::string> ReadId(const PayloadValue& value, std::string_view field) const;

  BufferedReader& in_;
  const Limits& limits_;
  JsonlReader lines_;
  std::vector<std::string> item_fields_;
  bool has_users_ = false;     // some line has a `user_id`
  std::string first_members_;  // the members of the first line
};

// Whether an object is probably a line of interactions: it has a user and an item, under the names
// that people give them. Its `id` does not count as the item: that is a thing which the user has
// made.
bool LooksLikeInteraction(const PayloadObject& line);

struct Interactions {
  SeenSets seen;  // by user row
  // The people with interactions who are no users, in the order of their first lines.
  IdIndex visitor_ids;
  SeenSets visitor_seen;  // by visitor row
  // Items by descending number of users and of visitors who are no users, then by row. Every user
  // of a line counts once for an item; a line of nobody counts by itself.
  std::vector<Row> most_seen;
  // One sentence each about lines of items that the collection does not have, of visitors, and
  // blank lines. Lines of missing items are left out, because logs and catalogues are exported at
  // different times.
  std::vector<std::string> notes;
  // There are lines, but none can be used: none names a known item and, where the collection has
  // users, a known user.
  bool all_unknown = false;
};

//   users  empty in a collection without users, where all lines are of visitors
//   keep   kNothing: the same checks and notes, without seen sets
// Errors: InteractionsReader::ReadAll's.
absl::StatusOr<Interactions> ReadInteractions(BufferedReader& in, const IdIndex& users,
                                              const IdIndex& items, const std::string& id_field,
                                              Keep keep, const Limits& limits);

}  // namespace simile::data

#pragma once

#include <span>
#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "cli/command_tree.h"

namespace simile::cli {

// The server's errors name the fields of a request; who uses the program knows its flags.

// One row of the table: the flag that sets a field and the fields of this field that have no row.
struct FlagName {
  // Of any request, without indices, and without `options.` or `queries[].` where both have it:
  // "cold_start.field".
  std::string_view field;
  std::string_view flag;     // "--fields", or the name of an argument: "FOLDER"
  std::string_view command;  // the only one where it is this flag; empty: every command
};
std::span<const FlagName> FlagNames();

// The flag by which the command sets a field, such as "queries[3].id"; empty for none.
std::string_view FlagOf(std::string_view command, std::string_view field);

// The same error with the flag instead of the field that its message begins with:
//   options.k: 0; ask for 1 to 10,000        ->  -k 0: ask for 1 to 10,000
//   filter, column 1: films has no field ... ->  --filter, column 1: films has no field ...
//   queries[3].id: empty; ...                ->  4th --id: empty; ...
// A wrong name of a collection is told with the flag or argument that it was given as. An answer
// that is too large is told with the flags that make it smaller. Unchanged when its message begins
// with no field, or with one that no flag sets. The details keep the field (errors.h).
//   collection_given_as  kCollectionFlag or kCollectionArgument
absl::Status InFlags(const absl::Status& error, std::string_view command,
                     std::string_view collection_given_as = kCollectionFlag);

// The same note of an answer, with the flag instead of the option that it begins with:
//   options.exclude_seen has no effect: ...  ->  --exclude-seen has no effect: ...
std::string NoteInFlags(const std::string& note, std::string_view command);

}  // namespace simile::cli

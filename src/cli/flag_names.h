#pragma once

#include <span>
#include <string>
#include <string_view>

#include <absl/status/status.h>

#include "cli/command_tree.h"

namespace simile::cli {

// The server's errors name fields of requests. Users of the program know flags, so errors and notes
// are translated here.

// One row of the table: a field and the flag that sets it. The row also covers the field's
// subfields that have no row.
struct FlagName {
  // The field's path without indices, such as "cold_start.field". If other requests have a field of
  // `options.` or `queries[].` too, the row leaves out this prefix.
  std::string_view field;
  std::string_view flag;     // "--fields", or the name of an argument: "FOLDER"
  std::string_view command;  // the only command with this flag for the field; empty: every command
};
std::span<const FlagName> FlagNames();

// The flag with which the command sets a field, such as "queries[3].id"; empty if it has none.
std::string_view FlagOf(std::string_view command, std::string_view field);

// The same error with the flag instead of the field that its message begins with:
//   options.k: 0; ask for 1 to 10,000        ->  -k 0: ask for 1 to 10,000
//   filter, column 1: films has no field ... ->  --filter, column 1: films has no field ...
//   queries[3].id: empty; ...                ->  4th --id: empty; ...
// For a wrong collection name, names the flag or argument that gave it. For an answer that is too
// large, names the flags that make it smaller. Unchanged if the message begins with no field, or
// with a field that no flag sets. The details keep the field (errors.h).
//   collection_given_as  kCollectionFlag or kCollectionArgument
absl::Status InFlags(const absl::Status& error, std::string_view command,
                     std::string_view collection_given_as = kCollectionFlag);

// A note of an answer, with the flag instead of the option that the note begins with:
//   options.exclude_seen has no effect: ...  ->  --exclude-seen has no effect: ...
std::string NoteInFlags(const std::string& note, std::string_view command);

}  // namespace simile::cli

#pragma once

#include <string>
#include <vector>

#include <absl/status/status.h>

#include "cli/command_tree.h"

namespace simile::cli {

// Errors for what the command line does not know, with the nearest name. All are kInvalidArgument.

// `search has no flag "--colection". Did you mean "--collection"?` Where no name of a flag is near,
// a flag that ends in the same word is offered.
absl::Status UnknownFlag(const CommandSpec& command, const std::string& name);
absl::Status UnknownCommand(const ProgramSpec& program, const std::string& name);
//   texts  the line after the program's name; its first text is a flag
absl::Status FlagBeforeCommand(const ProgramSpec& program, const std::vector<std::string>& texts);

// What was probably meant by a text without its flag: `Did you mean
// --title "Toy Story"?`
std::string AwaitedAdvice(const Argument& flag, const std::string& text);

}  // namespace simile::cli

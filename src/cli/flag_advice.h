#pragma once

#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "cli/command_tree.h"

namespace simile::cli {

// Errors for what the command line does not know, with what was probably meant: the name that other
// tools' users type for it, else the nearest name. All are kInvalidArgument.

// `similar has no flag "--top-k"; say -k COUNT`
//   value  the text after it; nullopt for none
absl::Status UnknownFlag(const CommandSpec& command, const std::string& name,
                         const std::optional<std::string>& value);
absl::Status UnknownCommand(const ProgramSpec& program, const std::string& name);
//   texts  the line after the program's name; its first text is a flag
absl::Status FlagBeforeCommand(const ProgramSpec& program, const std::vector<std::string>& texts);

// What was probably meant by a text without its flag: `Did you mean
// --title "Toy Story"?`
std::string AwaitedAdvice(const Argument& flag, const std::string& text);

}  // namespace simile::cli

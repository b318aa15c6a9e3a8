#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "cli/command_tree.h"

namespace simile::cli {

enum class ParsedLine : std::uint8_t { kToRun, kAsksForHelp };

// Parses the texts after a command's name and stores their values in the command's variables, in
// the order of the texts. A flag's value is the next text, or a part of the flag's own text:
// `--id=a`, `-k=5`, `-k5`. After `--` every text is an argument. Refuses an argument too many, and
// a flag of one value that is given twice. Errors: kInvalidArgument for the first mistake.
absl::StatusOr<ParsedLine> ParseArguments(const CommandSpec& command,
                                          std::span<const std::string> texts);

// Errors for a name that the command line does not know; they offer the nearest known name. All are
// kInvalidArgument.
absl::Status UnknownCommand(const ProgramSpec& program, const std::string& name);
//   texts  the line after the program's name; its first text is a flag
absl::Status FlagBeforeCommand(const ProgramSpec& program, const std::vector<std::string>& texts);

}  // namespace simile::cli

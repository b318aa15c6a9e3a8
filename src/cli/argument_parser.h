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

// Stores what the texts after a command's name say in the command's variables, in their order. A
// flag's value is its next text, or follows it: `--id=a`, `-k=5`, `-k5`. After `--` every text is
// an argument. A text with no place among the arguments is refused, and so is a flag that takes one
// value and is given twice.
// Errors: kInvalidArgument for the first mistake.
absl::StatusOr<ParsedLine> ParseArguments(const CommandSpec& command,
                                          std::span<const std::string> texts);

// Errors for what the command line does not know, with the nearest name. All are kInvalidArgument.
absl::Status UnknownCommand(const ProgramSpec& program, const std::string& name);
//   texts  the line after the program's name; its first text is a flag
absl::Status FlagBeforeCommand(const ProgramSpec& program, const std::vector<std::string>& texts);

}  // namespace simile::cli

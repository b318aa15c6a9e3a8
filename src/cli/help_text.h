#pragma once

#include <string>
#include <vector>

#include "cli/command_tree.h"

namespace simile::cli {

// Texts of --help, at most 80 columns wide.
std::string ProgramHelp(const ProgramSpec& program);
std::string CommandHelp(const ProgramSpec& program, const CommandSpec& command);

// What a list flag takes; empty for a command without one.
std::string ListRule(const CommandSpec& command);

// `simile recommend --user ID,... [OPTIONS] [COLLECTION]`
std::string UsageText(const ProgramSpec& program, const CommandSpec& command);

// Breaks a text at spaces into lines at most this wide; a longer word has a line of its own.
std::vector<std::string> Wrapped(const std::string& text, std::size_t width);

}  // namespace simile::cli

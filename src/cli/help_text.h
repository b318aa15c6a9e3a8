#pragma once

#include <string>

#include "cli/command_tree.h"

namespace simile::cli {

// Texts of --help, at most 80 columns wide.
std::string ProgramHelp(const ProgramSpec& program);
std::string CommandHelp(const ProgramSpec& program, const CommandSpec& command);

// What a list flag takes; empty for a command without one.
std::string ListRule(const CommandSpec& command);

// `simile recommend --user ID,... [OPTIONS] [COLLECTION]`
std::string UsageText(const ProgramSpec& program, const CommandSpec& command);

// The manual page, section 1, as roff: every command with what its help says.
std::string ManPage(const ProgramSpec& program);

}  // namespace simile::cli

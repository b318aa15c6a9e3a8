#pragma once

#include <string>

#include "cli/command_tree.h"

namespace simile::cli {

// The texts of --help, at most 80 columns wide.
std::string ProgramHelp(const ProgramSpec& program);
std::string CommandHelp(const ProgramSpec& program, const CommandSpec& command);

// How to write the values of a list flag; empty if the command has no list flag.
std::string ListRule(const CommandSpec& command);

// `simile recommend --user ID,... [OPTIONS] [COLLECTION]`
std::string UsageText(const ProgramSpec& program, const CommandSpec& command);

// The manual page, section 1, as roff: the help of every command.
std::string ManPage(const ProgramSpec& program);

}  // namespace simile::cli

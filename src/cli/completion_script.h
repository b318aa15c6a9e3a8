#pragma once

#include <string>

#include "cli/command_tree.h"

namespace simile::cli {

// Scripts that complete the program's command line: commands, flags, the values of flags that have
// choices, and file names where a file is meant.
std::string BashCompletion(const ProgramSpec& program);
std::string ZshCompletion(const ProgramSpec& program);
std::string FishCompletion(const ProgramSpec& program);

}  // namespace simile::cli

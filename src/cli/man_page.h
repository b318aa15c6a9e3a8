#pragma once

#include <string>

#include "cli/command_tree.h"

namespace simile::cli {

// The manual page, section 1, as roff: every command with what its help says.
std::string ManPage(const ProgramSpec& program);

}  // namespace simile::cli

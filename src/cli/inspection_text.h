#pragma once

#include <string>

#include "cli/terminal.h"
#include "data/inspect.h"

namespace simile::cli {

// What was found, one fact a line, and the verdict when it is good; a bad one is an error message.
std::string InspectionText(const std::string& path, const data::Inspection& inspection,
                           const Terminal& terminal);

// {"path", "kind", "loads", "facts": {label: value}, "error"} on one line, ended by '\n'. error is
// null when it loads.
std::string InspectionJson(const std::string& path, const data::Inspection& inspection);

}  // namespace simile::cli

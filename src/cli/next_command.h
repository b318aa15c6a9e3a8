#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/client_flags.h"

namespace simile::cli {

// The command to suggest next, for the server and the collection that this one's flags named:
// `simile fetch --id heat-1995 --collection films`.
//   words  the command and its own flags: "fetch --id heat-1995"
std::string NextCommand(std::string_view words, const ClientFlags& client,
                        const std::optional<std::string>& collection);

}  // namespace simile::cli

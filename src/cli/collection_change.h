#pragma once

#include <functional>
#include <string>

#include <absl/status/statusor.h>

#include "cli/client_flags.h"

namespace simile::cli {

// Makes a change that loads files (`load`, `reload`) under a progress bar, then shows the
// collection that came of it. Returns the exit code.
//   verb    "loading", as the bar says
//   change  makes the call
int ShowChange(const ClientFlags& flags, const std::string& verb, const std::string& name,
               const std::function<absl::StatusOr<v1::Collection>(const Connection&)>& change);

}  // namespace simile::cli

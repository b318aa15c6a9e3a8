#pragma once

#include <optional>
#include <string>

#include <absl/status/statusor.h>

#include "cli/connection.h"

namespace simile::cli {

// The collection meant: the named one, else the server's only one.
// Errors: the server's for an unknown name; kInvalidArgument listing the names when there are
// several; kNotFound when there is none.
absl::StatusOr<v1::Collection> ChooseCollection(const Connection& connection,
                                                const std::optional<std::string>& name);

}  // namespace simile::cli

#pragma once

#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "app/config_read.h"

namespace simile::cli {

// FOLDER as NAME=FOLDER, named as the folder is; NAME=FOLDER as it is.
std::string NamedFolder(const std::string& collection);

// The configuration of a command that takes FOLDERs in place of the configured collections.
//   file         of --config
//   collections  each FOLDER or NAME=FOLDER; empty: the configured ones
//   threads      of --threads
// Errors: those of app::ReadConfig.
absl::StatusOr<app::ConfigReading> ReadConfigFor(const std::optional<std::string>& file,
                                                 const std::vector<std::string>& collections,
                                                 const std::optional<std::string>& threads);

}  // namespace simile::cli

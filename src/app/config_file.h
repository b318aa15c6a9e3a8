#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "app/settings.h"

namespace simile::app {

// One value of a configuration file, as Setting::set takes it.
struct FileValue {
  std::string key;  // "server.port", or a familiar name
  std::vector<std::string> values;
};

// Reads a JSON configuration file into key and value pairs: each key once, each value of the JSON
// type of its setting. Relative paths start at the file's folder.
// Errors: kNotFound; kInvalidArgument for text that is not JSON (line and column), unknown keys
//         (UnknownSetting), duplicate keys, values of another type; those of
//         base::ReadWholeFile, for over 1 MiB too.
absl::StatusOr<std::vector<FileValue>> ReadConfigFile(const std::filesystem::path& file);

// Returns the error for an unknown key or variable: kInvalidArgument with its new name if it was
// renamed (RenamedSettings), else with the nearest of `known` if one is near.
absl::Status UnknownSetting(std::string_view name, const std::vector<std::string>& known,
                            std::string_view origin);

}  // namespace simile::app

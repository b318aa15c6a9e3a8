#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "app/settings.h"

namespace simile::app {

// One value of a configuration file, as the texts that Setting::set takes.
struct FileValue {
  std::string key;  // "server.port", or a familiar name
  std::vector<std::string> values;
};

// Reads a JSON configuration file into key and value pairs, each key once, each value of the JSON
// type its setting wants, relative paths made to count from the file's folder.
// Errors: kNotFound; kInvalidArgument for what is not JSON (line and column), unknown keys (with
//         the nearest known one), keys given twice, values of another type, files over 1 MiB.
absl::StatusOr<std::vector<FileValue>> ReadConfigFile(const std::filesystem::path& file);

// The error for a key or variable nobody knows: names the nearest of `known`, if one is near.
absl::Status UnknownName(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known, std::string_view origin);

}  // namespace simile::app

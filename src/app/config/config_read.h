#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>

#include "app/config/config.h"
#include "app/config/foreign_variables.h"

namespace simile::app {

// A flag on the command line: the key of its setting and its values as typed.
struct FlagValue {
  std::string key;
  std::vector<std::string> values;
};

// The sources of a configuration, in rising precedence.
struct ConfigSources {
  std::filesystem::path file;  // JSON; empty: the file that SIMILE_CONFIG names, if any
  std::vector<std::pair<std::string, std::string>> environment;  // the whole environment
  std::vector<FlagValue> flags;
};

// A configuration and, for each setting in the order of Settings(), the origin of its value.
// Origins are "default", "default (HOME)" if the default depends on that variable, "flag --port",
// "environment SIMILE_SERVER_PORT" and "file simile.json".
struct ConfigReading {
  Config config;
  std::vector<std::string> origins;
  // The variables that are set and have a row in ForeignVariables(): in the order of the rows, and
  // of one row by name.
  std::vector<ForeignValue> foreign_values;
  // The variables that are set and have a row in FamiliarNames(), by name.
  std::map<std::string, std::string> familiar_values;
  // For each of these variables, the value of its setting before the variable was read.
  std::map<std::string, std::string> before_familiar;
};

// Reads the file, then the environment, then the flags; each overrides the one before.
//   file         an object; keys nest or are dotted: {"server": {"port": 1}} or {"server.port": 1}.
//                Relative paths in it start at its folder.
//   environment  SIMILE_* and the familiar names (USE_GPU), over which SIMILE_* wins.
//                SIMILE_COLLECTIONS_SERVE is a list separated by commas. Variables that container
//                managers inject to link services are ignored.
// Errors: kInvalidArgument with key, value, range and origin of a wrong value, or for an unknown or
//         renamed key or SIMILE_ variable (UnknownSetting); kNotFound for a missing file.
absl::StatusOr<ConfigReading> ReadConfig(const ConfigSources& sources);

// The origin of a value that this variable gave.
std::string VariableOrigin(std::string_view name);

// An error about a setting, named as its value was given: by the flag or the variable, else by its
// key and the file: `--port: "99999" is not a whole number from 0 to 65535`.
//   origin  as in ConfigReading
std::string SettingErrorText(std::string_view key, std::string_view origin,
                             std::string_view message);

// The format of the log alone, so that an error of ReadConfig can be logged in it. Ignores a
// configuration file that is wrong. Text when the sources do not say.
LogFormat ReadLogFormat(ConfigSources sources);

// The environment of this process.
std::vector<std::pair<std::string, std::string>> ProcessEnvironment();

}  // namespace simile::app

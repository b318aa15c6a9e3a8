#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>

#include "app/config.h"

namespace simile::app {

// A flag that was given: the key of its setting and its values as typed.
struct FlagValue {
  std::string key;
  std::vector<std::string> values;
};

// Where a configuration comes from, in rising order.
struct ConfigSources {
  std::filesystem::path file;  // JSON; empty: the one SIMILE_CONFIG names, if any
  std::vector<std::pair<std::string, std::string>> environment;  // the whole environment
  std::vector<FlagValue> flags;
};

// A configuration and, for every setting of Settings() in turn, where its value comes from:
// "default", "default (HOME)" where it follows from that variable, "file simile.json", "environment
// SIMILE_SERVER_PORT" or "flag --port".
struct ConfigReading {
  Config config;
  std::vector<std::string> origins;
};

// Reads the file, then the environment, then the flags, each over what was there before.
//   file         an object; keys nest or are dotted: {"server": {"port": 1}} or {"server.port": 1}.
//                Relative paths in it count from its folder.
//   environment  SIMILE_* only; of two spellings of one value the SIMILE_ one wins over the
//                familiar one (USE_GPU). The lists of SIMILE_COLLECTIONS_SERVE are divided by
//                commas. What container managers inject to link services is passed over.
// Errors: kInvalidArgument naming key, value, what would be right and where it was said; unknown
//         keys and SIMILE_ names with the nearest known one; kNotFound for a file that is not
//         there.
absl::StatusOr<ConfigReading> ReadConfig(const ConfigSources& sources);

// The environment of this process.
std::vector<std::pair<std::string, std::string>> ProcessEnvironment();

}  // namespace simile::app

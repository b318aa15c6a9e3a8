#pragma once

#include <string>
#include <vector>

#include <absl/status/status.h>

#include "app/config_read.h"

namespace simile::app {

// What a valid configuration still lacks.

// kInvalidArgument when such a server could never answer: no collection is configured, and none can
// be loaded later.
absl::Status CheckSomethingToServe(const Config& config);

// kInvalidArgument when the settings of encryption and access do not go together.
absl::Status CheckAccess(const Config& config);

// A setting that names files which are not as it needs them.
struct ConfigProblem {
  std::string key;     // "collections.serve"
  std::string origin;  // of its value, as in ConfigReading
  std::string message;
};

// Whether the data root is set and is no folder.
bool LacksDataRoot(const Config& config);

// Looks at the folders: the data root must be one, and each collection's must hold vectors and
// whole headers. Reads headers, no rows.
std::vector<ConfigProblem> FolderProblems(const ConfigReading& reading);

// `--data-root: /srv: the folder does not exist`; see SettingErrorText.
std::string ProblemText(const ConfigProblem& problem);

// Why a configured collection cannot be loaded, with its folder as it was given, for who operates
// the server: `films=/srv/films: the folder does not exist`.
std::string LoadErrorText(const CollectionConfig& collection, const absl::Status& error);

}  // namespace simile::app

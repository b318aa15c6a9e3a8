#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "app/config/config_read.h"

namespace simile::app {

// Checks of a valid configuration: what a server would still lack.

// kInvalidArgument when a server could never answer: no collection is configured, and none can be
// loaded later.
absl::Status CheckSomethingToServe(const Config& config);

// kInvalidArgument when the settings of encryption and access do not go together.
absl::Status CheckAccess(const Config& config);

// A setting that names a folder which cannot be served.
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

// What an environment variable of another program did to this server.
struct VariableEffect {
  std::string name;    // "GPU_DEVICE_ID"
  std::string value;   // "1"; see ForeignValue::display_value
  std::string reader;  // "this server", or as ReaderName
  // "gpu.device is 1 instead of 0", "gpu.device is 2, from flag --gpu-device",
  // "limits.batch_queries_max stays 1024", or as ForeignVariable::effect
  std::string effect;
  bool has_changed = false;  // false: all is as without the variable
};

// One effect for each variable of another program that is set. The variables whose values this
// server takes come first. Pure.
std::vector<VariableEffect> DescribeEffects(const ConfigReading& reading);

// The variables without a reader: `TF32_OVERRIDE, OMP_NUM_THREADS`.
std::string IgnoredVariables(const std::vector<VariableEffect>& effects);

// The variables that are read but change nothing. A variable that this server reads is followed by
// the value of its setting: `USE_GPU=true (backend.preference is auto), CUDA_MODULE_LOADING=LAZY`.
std::string VariablesWithoutChange(const std::vector<VariableEffect>& effects);

}  // namespace simile::app

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/config_read.h"

namespace simile::app {

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
std::vector<VariableEffect> EffectsOf(const ConfigReading& reading);

// The variables without a reader: `TF32_OVERRIDE, OMP_NUM_THREADS`.
std::string IgnoredVariables(const std::vector<VariableEffect>& effects);

// The variables that are read but change nothing. A variable of this server has its setting's value
// behind it: `USE_GPU=true (backend.preference is auto), CUDA_MODULE_LOADING=LAZY`.
std::string VariablesWithoutChange(const std::vector<VariableEffect>& effects);

}  // namespace simile::app

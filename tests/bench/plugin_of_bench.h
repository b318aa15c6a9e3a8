#pragma once

#include <string>

#include <absl/status/statusor.h>

#include "backend/accelerator_plugin.h"

namespace simile::bench {

// The path of the GPU plug-in beside this program: the first file that is there, in the order of
// the server.
std::string PluginBeside();

// Loads a plug-in as the server does, and asks it for a device.
// Errors: those of LoadGpuPlugin; kUnavailable when no device can be used, with the vendor's words.
absl::StatusOr<const SimilePlugin*> LoadPluginForDevice(const std::string& path);

// Whether this is the error of LoadPluginForDevice that no device can be used.
bool IsNoCard(const absl::Status& status);

}  // namespace simile::bench

#pragma once

#include <optional>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "backend/accelerator_kinds.h"
#include "backend/accelerator_plugin.h"

namespace simile::backend {

// Loads the libraries that a GPU needs. They stay loaded until the process ends, because drivers do
// not survive being unloaded. All errors are kFailedPrecondition with text for a receipt, so they
// name files without their folders.

// Loads the driver's library, by its name or path as for dlopen.
// Errors: it is not on this machine, or it cannot be loaded.
absl::Status LoadDriver(const std::string& library, const AcceleratorKind& kind);

// Loads the plug-in in this file.
// Errors: it cannot be loaded, does not export the entry symbol, or has another build id or
//         interface version than the server.
absl::StatusOr<const SimilePlugin*> LoadGpuPlugin(const std::string& path,
                                                  const std::string& entry_symbol);

// Returns the vendor's error code that a plug-in's Status carries (kDeviceErrorPayload); nullopt
// for none.
std::optional<int> DeviceErrorOf(const absl::Status& status);

}  // namespace simile::backend

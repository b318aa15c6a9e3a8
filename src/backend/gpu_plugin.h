#pragma once

#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "backend/cuda/plugin.h"

namespace simile::backend {

// Loading what a GPU needs. A library stays loaded for the life of the process: drivers do not
// survive being unloaded. All errors are kFailedPrecondition in words for a receipt, with file
// names and never folders, which are nobody's business there.

// The driver's library, by its name or path as for dlopen.
// Errors: there is none on this machine, or it cannot be loaded.
absl::Status LoadDriver(const std::string& library);

// The plug-in in this file.
// Errors: it cannot be loaded, is something else, or is from another build, which it is told by its
//         build id and interface before anything else of it is trusted.
absl::StatusOr<const SimileCudaPlugin*> LoadGpuPlugin(const std::string& path);

}  // namespace simile::backend

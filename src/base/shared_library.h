#pragma once

#include <string>

#include <absl/status/statusor.h>

namespace simile::base {

// Loads a library, by its name or path as for dlopen. It is never unloaded, because drivers do not
// survive it.
// Errors: kNotFound when it is not on this machine; kFailedPrecondition with the loader's words
//         when it cannot be loaded. Neither names its folder.
absl::StatusOr<void*> LoadSharedLibrary(const std::string& library);

}  // namespace simile::base

#pragma once

#include <string>

#include <absl/status/statusor.h>

namespace simile::base {

// Loads a library by its name or path, as dlopen does. The library is never unloaded, because
// drivers do not survive that.
// Errors: kNotFound when it is not on this machine; kFailedPrecondition with the loader's words
//         when it cannot be loaded. Neither message names its folder.
absl::StatusOr<void*> LoadSharedLibrary(const std::string& library);

}  // namespace simile::base

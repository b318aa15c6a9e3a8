#pragma once

#include <filesystem>
#include <string>

#include <absl/status/statusor.h>

namespace simile::service {

// Resolves a caller's path relative to the data root, with every link followed. Reads the file
// system, so it must not run on gRPC's threads.
// Errors: kFailedPrecondition when there is no data root; kInvalidArgument when the path is empty
//         or absolute, contains `..` or a NUL byte, leads out through a link or is no folder;
//         kNotFound when it does not exist. They quote only what the caller sent and do not reveal
//         what exists outside the root.
absl::StatusOr<std::filesystem::path> ResolveInDataRoot(const std::filesystem::path& data_root,
                                                        const std::string& folder);

}  // namespace simile::service

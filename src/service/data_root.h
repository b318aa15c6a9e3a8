#pragma once

#include <filesystem>
#include <string>

#include <absl/status/statusor.h>

namespace simile::service {

// Resolves a caller's path relative to the data root, with every link followed. Reads the file
// system, so it must not run on gRPC's threads.
// Errors: OUTSIDE_DATA_ROOT when the path is absolute, contains `..` or leads out through a link,
// or
//         when there is no data root; INVALID_FIELD when it is empty, too long or contains a NUL
//         byte; INVALID_FILES when it does not exist or is no folder. They quote only what the
//         caller sent and do not reveal what exists outside the root.
absl::StatusOr<std::filesystem::path> ResolveInDataRoot(const std::filesystem::path& data_root,
                                                        const std::string& folder);

// The path by which ResolveInDataRoot finds the folder: "." for the data root itself. Empty when
// the folder, with every link followed, is not inside the data root. Reads the file system.
std::string PathInDataRoot(const std::filesystem::path& data_root,
                           const std::filesystem::path& folder);

}  // namespace simile::service

#pragma once

#include <filesystem>
#include <string>

#include <absl/status/statusor.h>

namespace simile::service {

// The folder a caller means by a path relative to the data root, with every link followed. No
// message shows more than the caller sent: what lies outside the root is not even acknowledged.
// Asks the file system, so not for gRPC threads.
// Errors: kFailedPrecondition when there is no data root; kInvalidArgument when the path is empty,
//         absolute, contains `..` or a NUL byte, leads out through a link or is no folder;
//         kNotFound when nothing is there.
absl::StatusOr<std::filesystem::path> ResolveInDataRoot(const std::filesystem::path& data_root,
                                                        const std::string& folder);

}  // namespace simile::service

#pragma once

#include <filesystem>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "backend/failover_backend.h"

namespace simile::app {

// The file in which a process records for later starts that it lost its GPU: JSON, the last 16.

// Returns the faults, oldest first; none if there is no file.
// Errors: kInvalidArgument if it is another kind of file; kPermissionDenied if it cannot be read.
absl::StatusOr<std::vector<backend::GpuFault>> ReadFaultJournal(const std::filesystem::path& file);

// Adds a fault and drops the oldest beyond 16. Creates the file and its folders. If two processes
// write at the same time, one fault may be lost.
// Errors: kInvalidArgument if it is another kind of file, which stays as it is; kUnavailable if it
//         cannot be written.
absl::Status AddToFaultJournal(const std::filesystem::path& file, const backend::GpuFault& fault);

}  // namespace simile::app

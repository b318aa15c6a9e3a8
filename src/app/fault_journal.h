#pragma once

#include <filesystem>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "backend/gpu_faults.h"

namespace simile::app {

// The file in which one process tells the next when it lost its GPU: JSON, the last 16 faults.

// The faults, oldest first; none when there is no file.
// Errors: kInvalidArgument when it is something else than such a file; kPermissionDenied when it
//         cannot be read.
absl::StatusOr<std::vector<backend::GpuFault>> ReadFaultJournal(const std::filesystem::path& file);

// Adds a fault; the oldest give way. Makes the file and its folders. Of two processes that write at
// the same time one fault may be lost.
// Errors: kInvalidArgument when the file is something else, which is left as it is; kUnavailable
//         when it cannot be written.
absl::Status AddToFaultJournal(const std::filesystem::path& file, const backend::GpuFault& fault);

}  // namespace simile::app

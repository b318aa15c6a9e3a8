#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace simile::base {

// Small files that this process writes are read whole and replaced in one step. A reader gets the
// old text or the new text, even after a crash, and never a part of either.

// Reads the whole file. Returns an empty text when the file is missing or cannot be reached.
// Errors: kInvalidArgument when it is not a regular file or holds more than bytes_max;
//         kPermissionDenied when it cannot be opened, or OUT_OF_MEMORY for lack of descriptors;
//         kDataLoss when it cannot be read.
absl::StatusOr<std::string> ReadWholeFile(const std::filesystem::path& file, std::size_t bytes_max);

struct ReplaceOptions {
  bool create_folders = false;
  mode_t mode = 0600;  // of the new file, less the process's umask
  // Copies mode, owner and group from the old file, if there is one. Fails where the process may
  // not change the owner.
  bool like_old = false;
};

// Writes the text to a draft beside the file, syncs it, renames it over the file and syncs the
// folder where that is possible. A failure removes the draft and leaves the old file.
// Errors: kUnavailable naming the file and the system's reason. Cost: two fsyncs.
absl::Status ReplaceFile(const std::filesystem::path& file, std::string_view text,
                         const ReplaceOptions& options);

}  // namespace simile::base

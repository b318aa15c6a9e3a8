#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace simile::base {

// Small files that this process writes are read whole and replaced in one step: a reader gets the
// old text or the new text, never a part of either, also after a crash.

// The file's text; empty when there is no such file, or none that can be reached.
// Errors: kInvalidArgument when it is not a regular file or holds more than bytes_max;
//         kPermissionDenied when it cannot be opened, or OUT_OF_MEMORY for lack of descriptors;
//         kDataLoss when it cannot be read.
absl::StatusOr<std::string> ReadWholeFile(const std::filesystem::path& file, std::size_t bytes_max);

struct ReplaceOptions {
  bool create_folders = false;
  mode_t mode = 0600;  // of the new file, less the process's umask
  // Where there is an old file: its mode, owner and group in place of that. A process that may not
  // give the file away is refused.
  bool like_old = false;
};

// Writes the text to a draft beside the file, syncs it, renames it over the file and syncs the
// folder where that is possible. A failure removes the draft and leaves the old file.
// Errors: kUnavailable naming the file and the system's reason. Cost: two fsyncs.
absl::Status ReplaceFile(const std::filesystem::path& file, std::string_view text,
                         const ReplaceOptions& options);

}  // namespace simile::base

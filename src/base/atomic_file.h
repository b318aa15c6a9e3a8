#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace simile::base {

// Small files that this process writes are read whole and replaced in one step: a reader gets the
// old text or the new text, never a part of either, also after a crash.

// The file's text; empty when there is no such file.
// Errors: kInvalidArgument when it is not a regular file or holds more than bytes_max;
//         kPermissionDenied when it cannot be opened; kDataLoss when it cannot be read.
absl::StatusOr<std::string> ReadWholeFile(const std::filesystem::path& file, std::size_t bytes_max);

enum class ParentFolders : std::uint8_t { kMustExist, kCreate };

// Writes the text to a draft beside the file, syncs it, renames it over the file and syncs the
// folder. Everybody may read the file, its owner may write it. A failure removes the draft and
// leaves the old file, except where only the folder's sync fails: then the new file is in place and
// may be lost in a crash. Errors: kUnavailable naming the file and the system's reason. Cost: two
// fsyncs.
absl::Status ReplaceFile(const std::filesystem::path& file, std::string_view text,
                         ParentFolders folders);

}  // namespace simile::base

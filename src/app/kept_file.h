#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace simile::app {

// A small file of our own that outlives the process. It is read whole and replaced in one step, so
// that whoever reads meanwhile finds the old one or the new one.

// Its text; empty when there is none, or an empty one, which a crash right after it was made
// leaves. Errors: kInvalidArgument when it is no file or larger than ours ever are;
// kPermissionDenied when
//         it cannot be read.
absl::StatusOr<std::string> ReadKeptFile(const std::filesystem::path& file, std::size_t bytes_max);

// Makes the file and its folders where they are missing.
// Errors: kUnavailable when it cannot be written.
absl::Status ReplaceKeptFile(const std::filesystem::path& file, const std::string& text);

}  // namespace simile::app

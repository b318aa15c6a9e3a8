#pragma once

#include <filesystem>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <nlohmann/json.hpp>

namespace simile::app {

// The file that keeps measurements between starts, as JSON: "machines" of tuning_cache.h, and
// "gpu_segments" of gpu_choice_file.h. Members that this release does not know stay.

// The content; that of a new file where it is missing or empty.
// Errors: kInvalidArgument if it is another kind of file; kPermissionDenied if it cannot be read.
absl::StatusOr<nlohmann::ordered_json> ReadTuningFile(const std::filesystem::path& file);

// Replaces the file in one step; creates it and its folders. All users may read it.
// Errors: kUnavailable if it cannot be written.
absl::Status WriteTuningFile(const std::filesystem::path& file,
                             const nlohmann::ordered_json& content);

// Whether an entry has every member of the key, with the same value.
bool IsEntryFor(const nlohmann::ordered_json& entry, const nlohmann::ordered_json& key);

}  // namespace simile::app

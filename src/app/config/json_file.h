#pragma once

#include <filesystem>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <nlohmann/json.hpp>

namespace simile::app {

// The JSON object of a file. Its destructor allocates nothing, even when memory ran out in the
// middle of the parse. The library's own destructor allocates, and ends the process where it
// cannot.
class JsonObject {
 public:
  // Parses a file's text. Refuses duplicate names, where the library would silently keep the last
  // value, and more than 32 lists and objects inside one another. May throw bad_alloc.
  //   example  a right object, for messages
  // Errors: kInvalidArgument, which names the file and the place.
  static absl::StatusOr<JsonObject> Parse(std::string_view text, std::string_view file_name,
                                          std::string_view example);
  ~JsonObject();
  JsonObject(JsonObject&&) noexcept = default;

  const nlohmann::json& get() const { return object_; }

 private:
  JsonObject() = default;

  nlohmann::json object_;
};

// The file that keeps measurements between starts, as JSON: "machines" of tuning_cache.h, and
// "gpu_segments" of gpu_choice_file.h. Members that this release does not know stay.

// Reads the content of the file. A missing or empty file gives the content of a new one.
// Errors: kInvalidArgument if it is another kind of file; kPermissionDenied if it cannot be read.
absl::StatusOr<nlohmann::ordered_json> ReadTuningFile(const std::filesystem::path& file);

// Replaces the file in one step; creates it and its folders. All users may read it.
// Errors: kUnavailable if it cannot be written.
absl::Status WriteTuningFile(const std::filesystem::path& file,
                             const nlohmann::ordered_json& content);

// Whether an entry has every member of the key, with the same value.
bool IsEntryFor(const nlohmann::ordered_json& entry, const nlohmann::ordered_json& key);

}  // namespace simile::app

#pragma once

#include <string_view>
#include <utility>

#include <absl/status/statusor.h>
#include <nlohmann/json.hpp>

namespace simile::app {

// An object that was parsed. Its end takes no memory: that of the library's own would, for what it
// holds, and ends the process where there is none.
class JsonObject {
 public:
  explicit JsonObject(nlohmann::json object) : object_(std::move(object)) {}
  ~JsonObject();
  JsonObject(JsonObject&&) noexcept = default;

  const nlohmann::json& get() const { return object_; }

 private:
  nlohmann::json object_;
};

// Parses a file's JSON object. Refuses duplicate names; the library would silently keep the last.
//   example  of such an object, for messages
// Errors: kInvalidArgument, which names the file and the place.
absl::StatusOr<JsonObject> ParseJsonObject(std::string_view text, std::string_view file_name,
                                           std::string_view example);

}  // namespace simile::app

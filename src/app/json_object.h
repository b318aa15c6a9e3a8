#pragma once

#include <string_view>

#include <absl/status/statusor.h>
#include <nlohmann/json.hpp>

namespace simile::app {

// An object of a file. Destroying it allocates nothing, also when memory ran out in the middle of
// the parse: the library's own destructor allocates, and ends the process where it cannot.
class JsonObject {
 public:
  // Parses a file's text. Refuses duplicate names, of which the library would silently keep the
  // last, and more than 32 lists and objects inside one another. May throw bad_alloc.
  //   example  of such an object, for messages
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

}  // namespace simile::app

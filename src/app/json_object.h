#pragma once

#include <string_view>

#include <absl/status/statusor.h>
#include <nlohmann/json.hpp>

namespace simile::app {

// Parses a file's JSON object. Refuses duplicate names; the library would silently keep the last.
//   example  of such an object, for messages
// Errors: kInvalidArgument, which names the file and the place.
absl::StatusOr<nlohmann::json> ParseJsonObject(std::string_view text, std::string_view file_name,
                                               std::string_view example);

}  // namespace simile::app

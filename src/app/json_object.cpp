#include "app/json_object.h"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace simile::app {

using nlohmann::json;

namespace {

constexpr int kDepthMax =
    32;  // of lists and objects inside one another: far more than any file has

// Ends what it holds, the innermost first: without members none of them takes memory for its end.
// Recursion is bounded by kDepthMax.
void Clear(json& value) {
  if (!value.is_structured()) return;
  for (json& each : value) Clear(each);
  value.clear();
}

}  // namespace

JsonObject::~JsonObject() { Clear(object_); }

absl::StatusOr<JsonObject> ParseJsonObject(std::string_view text, std::string_view file_name,
                                           std::string_view example) {
  std::vector<std::set<std::string>> names;
  std::string repeated;
  bool is_too_deep = false;
  const auto on_event = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth >= kDepthMax) {
      is_too_deep = true;
      return false;
    }
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second)
      repeated = parsed.get<std::string>();
    return true;
  };
  try {
    JsonObject object(json::parse(text, on_event));
    if (is_too_deep) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: more than {} lists and objects inside one another", file_name, kDepthMax));
    }
    if (!repeated.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: \"{}\" is given twice", file_name, repeated));
    }
    if (!object.get().is_object()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: a JSON object belongs here, as in {}", file_name, example));
    }
    return object;
  } catch (const json::parse_error& error) {
    // Drops the library's error number in brackets; the rest says where the error is.
    const std::string_view what = error.what();
    const std::size_t place = what.find("] ");
    return absl::InvalidArgumentError(
        fmt::format("{}: not JSON: {}", file_name,
                    place == std::string_view::npos ? what : what.substr(place + 2)));
  }
}

}  // namespace simile::app

#include "data/jsonl_reader.h"

#include <utility>

#include <fmt/format.h>

#include "data/json_value.h"

namespace simile::data {

JsonlReader::JsonlReader(BufferedReader& in, const Limits& limits)
    : in_(in),
      json_(in.display_name(),
            {.depth_max = limits.json_depth_max, .text_bytes_max = limits.jsonl_line_bytes_max}),
      line_bytes_max_(limits.jsonl_line_bytes_max) {}

absl::StatusOr<bool> JsonlReader::Next(PayloadObject& object) {
  absl::StatusOr<bool> found = in_.ReadLine(line_ + 1, line_bytes_max_, text_);
  if (!found.ok() || !*found) return found;
  ++line_;
  if (text_.find_first_not_of(" \t\r") == std::string::npos) {
    return ErrorAtLine("is blank; one object a line is needed, without gaps");
  }
  json_.Begin(text_, line_);
  absl::StatusOr<PayloadObject> read = ReadJsonObject(json_);
  if (!read.ok()) return read.status();
  object = *std::move(read);
  return true;
}

absl::Status JsonlReader::ErrorAtLine(std::string_view what) const {
  return absl::InvalidArgumentError(
      fmt::format("{}: line {}: {}", in_.display_name(), line_, what));
}

}  // namespace simile::data

#include "data/jsonl_reader.h"

#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/json_value.h"
#include "data/text_shape.h"

namespace simile::data {

JsonlReader::JsonlReader(BufferedReader& in, const Limits& limits)
    : in_(in),
      json_(in.display_name(),
            {.depth_max = limits.json_depth_max, .text_bytes_max = limits.jsonl_line_bytes_max}),
      line_bytes_max_(limits.jsonl_line_bytes_max) {}

absl::StatusOr<bool> JsonlReader::Next(PayloadObject& object) {
  if (line_ == 0) {
    if (absl::Status status = CheckBegin(); !status.ok()) return status;
  }
  absl::StatusOr<bool> found = ReadLine();
  if (!found.ok() || !*found) return found;
  json_.Begin(text_, line_);
  absl::StatusOr<PayloadObject> read = ReadJsonObject(json_);
  if (!read.ok()) return read.status();
  object = *std::move(read);
  return true;
}

absl::StatusOr<bool> JsonlReader::ReadLine() {
  const std::uint64_t first = line_ + 1;
  bool blank = true;
  std::uint64_t line = line_;
  while (blank) {
    absl::StatusOr<bool> found = in_.ReadLine(++line, line_bytes_max_, text_);
    if (!found.ok() || !*found) return found;
    blank = text_.find_first_not_of(" \t\r") == std::string::npos;
  }
  line_ = first;
  if (line != first) return ErrorAtLine("is blank; one object a line is needed, without gaps");
  return true;
}

absl::Status JsonlReader::CheckBegin() {
  if (absl::Status status = in_.SkipByteOrderMark(); !status.ok()) return status;
  const absl::StatusOr<std::string_view> begin = in_.Peek();
  if (!begin.ok()) return begin.status();
  const auto refuse = [&](std::string_view what, std::string_view filter) {
    return Refuse(
        in_, fmt::format("{0}; one object a line is needed, as `jq -c '{1}' {2} > new.jsonl && mv "
                         "new.jsonl {2}` writes them",
                         what, filter, in_.display_name()));
  };
  const TextShape shape = TextShapeOf(*begin);
  switch (shape) {
    case TextShape::kList:
      return refuse("is one list of objects", ".[]");
    case TextShape::kIndented:
      return refuse("looks indented, an object over several lines", ".");
    case TextShape::kTable:
      return Refuse(in_, fmt::format("looks like CSV; one JSON object a line is needed, as "
                                     "pandas.read_csv(...).to_json({}, orient=\"records\", "
                                     "lines=True) writes them",
                                     base::Quoted(in_.display_name())));
    default:
      return CheckEncoding(in_, shape);
  }
}

absl::Status JsonlReader::ErrorAtLine(std::string_view what) const {
  return absl::InvalidArgumentError(
      fmt::format("{}: line {}: {}", in_.display_name(), line_, what));
}

}  // namespace simile::data

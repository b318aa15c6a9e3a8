#include "data/formats/jsonl_reader.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/formats/json_reader.h"
#include "data/formats/text_shape.h"

namespace simile::data {

namespace {

bool BeginsObject(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  return begin != line.npos && line[begin] == '{';
}

// Whether a line begins as an object and does not end as one.
bool LacksItsEnd(std::string_view line) {
  const std::size_t last = line.find_last_not_of(" \t\r,");
  return BeginsObject(line) && line[last] != '}';
}

// Whether the first line that is not blank may be an object.
bool MayBeLine(std::string_view begin, std::size_t bytes_max) {
  begin = WithoutBlanks(begin);
  const std::string_view line = begin.substr(0, begin.find('\n'));
  return line.size() <= bytes_max && BeginsObject(line) && !LacksItsEnd(line);
}

// Whether the first bytes of a file begin an object whose line is longer than these bytes.
bool IsCutLine(const BufferedReader& in, std::string_view begin) {
  const std::string_view text = WithoutBlanks(begin);
  return text.starts_with('{') && text.find('\n') == text.npos && in.bytes_left() > begin.size();
}

// Refuses a file of another format, and gives the command that writes its objects one a line. The
// command never writes into the file that it reads.
//   ending   the usual end of a file name of that format: ".csv"
//   command  what writes `to`, given the names
absl::Status RefuseFormat(
    const BufferedReader& in, std::string_view what, std::string_view ending,
    const std::function<std::string(const std::string& from, const std::string& to)>& command) {
  constexpr std::string_view kEndingOfLines = ".jsonl";
  const std::string& name = in.display_name();
  const bool is_named_lines = name.ends_with(kEndingOfLines);
  const std::string other =
      std::filesystem::path(name).replace_extension(is_named_lines ? ending : kEndingOfLines);
  const std::string how =
      is_named_lines
          ? fmt::format("`mv {} {}` and then {} write them", name, other, command(other, name))
          : fmt::format("{} writes them; name {} in {}", command(name, other), other,
                        kCollectionJson);
  return Refuse(in, fmt::format("{}; one JSON object a line is needed, as {}", what, how));
}

// The option of pandas.read_csv that names the separator of a table; empty for a comma.
std::string_view SeparatorOption(std::string_view begin) {
  const std::string_view line = begin.substr(0, begin.find('\n'));
  if (line.find('\t') != line.npos) return ", sep=\"\\t\"";
  return line.find(',') == line.npos ? ", sep=\";\"" : "";
}

}  // namespace

JsonlReader::JsonlReader(BufferedReader& in, const Limits& limits)
    : in_(in),
      json_(in.display_name(),
            {.depth_max = limits.json_depth_max, .text_bytes_max = limits.jsonl_line_bytes_max}),
      line_bytes_max_(limits.jsonl_line_bytes_max) {}

absl::StatusOr<bool> JsonlReader::Next(PayloadObject& object) {
  if (count_ == 0) {
    if (absl::Status status = CheckBegin(); !status.ok()) return status;
  }
  absl::StatusOr<bool> found = ReadLine();
  if (!found.ok() || !*found) return found;
  json_.Begin(text_, line_);
  absl::StatusOr<PayloadObject> read = ReadJsonObject(json_);
  if (read.ok()) {
    object = *std::move(read);
    return true;
  }
  if (!json_.is_at_end() || !BeginsObject(text_)) return read.status();
  const std::uint64_t first = line_;
  const absl::StatusOr<std::uint64_t> more = SkipRestOfObject();
  if (!more.ok()) return more.status();
  if (*more == 0) {
    const absl::StatusOr<std::string_view> next = in_.Peek();
    if (!next.ok()) return next.status();
    if (!next->empty() || !LacksItsEnd(text_)) return read.status();
    return absl::InvalidArgumentError(fmt::format("{}; the file ends there: it may be cut short",
                                                  std::string(read.status().message())));
  }
  return absl::InvalidArgumentError(
      fmt::format("{}: line {}: an object over several lines, up to line {}; one object a line is "
                  "needed",
                  in_.display_name(), first, first + *more));
}

absl::StatusOr<bool> JsonlReader::ReadLine() {
  const std::uint64_t first = line_ + 1;
  std::uint64_t line = line_;
  while (true) {
    absl::StatusOr<bool> found = in_.ReadLine(++line, line_bytes_max_, text_);
    if (found.ok() && !*found) return found;
    if (!found.ok() || text_.find_first_not_of(" \t\r") != std::string::npos) {
      if (line > first && blank_lines_ == 0) first_blank_line_ = first;
      blank_lines_ += line - first;
      line_ = line;
      ++count_;
      return found;
    }
  }
}

absl::StatusOr<std::uint64_t> JsonlReader::SkipRestOfObject() {
  std::uint64_t skipped = 0;
  while (true) {
    const absl::StatusOr<std::string_view> next = in_.Peek();
    if (!next.ok()) return next.status();
    if (next->empty() || next->front() == '{') return skipped;
    const absl::StatusOr<bool> read = in_.ReadLine(++line_, line_bytes_max_, text_);
    // A line that is too long is a part of the fault, too.
    if (!read.ok() && !absl::IsInvalidArgument(read.status())) return read.status();
    ++skipped;
  }
}

absl::StatusOr<std::uint64_t> JsonlReader::CountAll() {
  while (true) {
    const absl::StatusOr<bool> found = ReadLine();
    // A line that is too long counts.
    if (!found.ok() && !absl::IsInvalidArgument(found.status())) return found.status();
    if (found.ok() && !*found) return count_;
  }
}

std::string JsonlReader::BlankLinesText() const {
  if (blank_lines_ == 0) return {};
  return fmt::format("{} {} skipped, the first is line {}",
                     base::Counted(blank_lines_, "blank line"), blank_lines_ == 1 ? "is" : "are",
                     base::Grouped(first_blank_line_));
}

void JsonlReader::NoteForm(std::vector<std::string>& notes) const {
  if (!form_error_.ok()) notes.emplace_back(form_error_.message());
}

void JsonlReader::NoteBlankLines(std::vector<std::string>& notes) const {
  if (blank_lines_ == 0) return;
  notes.push_back(fmt::format("{}: {}", in_.display_name(), BlankLinesText()));
}

absl::Status JsonlReader::CheckBegin() {
  if (absl::Status status = in_.SkipByteOrderMark(); !status.ok()) return status;
  const absl::StatusOr<std::string_view> begin = in_.Peek();
  if (!begin.ok()) return begin.status();
  const ObjectsForm* const form = FindObjectsForm(*begin);
  // The beginning of a long line does not show whether the line is an object that is right.
  const bool is_long_line = IsCutLine(in_, *begin) && line_bytes_max_ > begin->size();
  if (form != nullptr && !is_long_line) {
    form_error_ = RefuseFormat(in_, form->what, ".json",
                               [form](const std::string& from, const std::string& to) {
                                 return JqCommand(*form, from, to);
                               });
    return MayBeLine(*begin, line_bytes_max_) ? absl::OkStatus() : form_error_;
  }
  const TextShape shape = ClassifyText(*begin);
  if (shape == TextShape::kTable) {
    return RefuseFormat(in_, "looks like CSV", ".csv",
                        [&begin](const std::string& from, const std::string& to) {
                          return PandasCommand("csv", from, to, SeparatorOption(*begin));
                        });
  }
  // An empty file has no objects.
  return shape == TextShape::kEmpty ? absl::OkStatus() : CheckHoldsData(in_, shape);
}

absl::Status JsonlReader::ErrorOfFile(const absl::Status& error) const {
  return form_error_.ok() || !absl::IsInvalidArgument(error) ? error : form_error_;
}

absl::Status JsonlReader::ErrorAtLine(std::string_view what) const {
  return absl::InvalidArgumentError(
      fmt::format("{}: line {}: {}", in_.display_name(), line_, what));
}

PayloadObject ReadFirstObject(ByteSource& source, const Limits& limits) {
  BufferedReader in(source);
  if (!in.SkipByteOrderMark().ok()) return {};
  const absl::StatusOr<std::string_view> begin = in.Peek();
  if (!begin.ok() || IsCutLine(in, *begin)) return {};
  const std::string_view text = WithoutBlanks(*begin);
  if (text.empty()) return {};
  JsonReader json(in.display_name(), {.depth_max = limits.json_depth_max,
                                      .text_bytes_max = limits.jsonl_line_bytes_max});
  json.Begin(text.substr(0, text.find('\n')));
  absl::StatusOr<PayloadObject> object = ReadJsonObject(json);
  return object.ok() ? *std::move(object) : PayloadObject();
}

}  // namespace simile::data

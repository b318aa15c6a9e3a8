#include "data/payload_reader.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/id_rules.h"
#include "data/json_value.h"
#include "data/jsonl_reader.h"

namespace simile::data {
namespace {

std::string ChooseIdField(const PayloadObject& first_line) {
  for (const char* const field : {"id", "media_id"}) {
    if (FindMember(first_line, field) != nullptr) return field;
  }
  return {};
}

// The id of the last line read.
absl::Status AddId(const JsonlReader& lines, const PayloadObject& object,
                   const std::string& id_field, bool field_was_configured, const Limits& limits,
                   IdIndex::Builder& ids) {
  const PayloadValue* const value = FindMember(object, id_field);
  if (value == nullptr) {
    return lines.ErrorAtLine(fmt::format("has no {}; {}", base::Quoted(id_field),
                                         field_was_configured
                                             ? "collection.json says that every line's id is there"
                                             : "line 1 has its id there, so every line needs it"));
  }
  const absl::StatusOr<std::string> id = IdFrom(*value, limits);
  if (!id.ok()) {
    return lines.ErrorAtLine(
        fmt::format("{} {}", base::Quoted(id_field), std::string(id.status().message())));
  }
  if (const absl::Status status = ids.Add(*id); !status.ok()) {
    return lines.ErrorAtLine(fmt::format("row {}: {}; ids must be distinct", lines.line() - 1,
                                         std::string(status.message())));
  }
  return absl::OkStatus();
}

absl::Status WrongCount(const BufferedReader& in, std::string_view lines,
                        const ExpectedRows& expected) {
  return absl::InvalidArgumentError(fmt::format("{}: {}, but {} has {}; one object a row is needed",
                                                in.display_name(), lines, expected.said_by,
                                                base::Counted(expected.count, "row")));
}

}  // namespace

absl::StatusOr<PayloadFile> ReadPayload(BufferedReader& in, const PayloadRules& rules,
                                        const Limits& limits) {
  const std::optional<ExpectedRows>& expected = rules.expected;
  const std::uint64_t row_count = expected ? expected->count : 0;
  PayloadFile file{.table = {}, .ids = {}, .id_field = rules.id_field, .notes = {}};
  JsonlReader lines(in, limits);
  PayloadTableBuilder table(row_count, limits, rules.keep);
  std::optional<IdIndex::Builder> ids;
  PayloadObject object;
  while (true) {
    const absl::StatusOr<bool> found = lines.Next(object);
    if (!found.ok()) return found.status();
    if (!*found) break;
    if (expected && lines.line() > expected->count) {
      return WrongCount(in, fmt::format("more than {}", base::Counted(expected->count, "line")),
                        *expected);
    }
    if (lines.line() > limits.rows_max) {
      return lines.ErrorAtLine(
          fmt::format("a collection may have {} rows", base::Grouped(limits.rows_max)));
    }
    if (lines.line() == 1) {
      if (file.id_field.empty()) file.id_field = ChooseIdField(object);
      if (!file.id_field.empty()) ids.emplace(row_count);
    }
    if (ids) {
      absl::Status status =
          AddId(lines, object, file.id_field, !rules.id_field.empty(), limits, *ids);
      if (!status.ok()) return status;
    }
    if (const absl::Status status = table.Add(object); !status.ok()) {
      return lines.ErrorAtLine(std::string(status.message()));
    }
  }
  if (expected && lines.line() != expected->count) {
    return WrongCount(in, base::Counted(lines.line(), "line"), *expected);
  }
  file.ids = ids ? std::move(*ids).Build() : IdIndex::OfRowNumbers(lines.line());
  absl::Status chosen = table.ChooseTypes(rules.fields, in.display_name(), file.notes);
  if (!chosen.ok()) return chosen;
  file.table = std::move(table).Build();
  return file;
}

}  // namespace simile::data

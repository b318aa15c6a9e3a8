#include "data/payload_reader.h"

#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

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

// A value for a message: a short text as written, else what it is.
std::string ValueText(const PayloadValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value.value)) return base::Quoted(*text);
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    for (const PayloadValue& element : *list) {
      if (std::holds_alternative<std::string>(element.value)) continue;
      return fmt::format("a list with {}", Describe(element));
    }
  }
  return std::string(Describe(value));
}

// The types that collection.json gives to fields.
class GivenTypes {
 public:
  explicit GivenTypes(const std::vector<NamedFieldType>& types) {
    for (const NamedFieldType& named : types) types_.emplace(named.field, named.type);
  }

  bool Has(const std::string& field) const { return types_.contains(field); }
  // What is wrong with the last line read.
  absl::Status Check(const JsonlReader& lines, const PayloadObject& object) const {
    if (types_.empty()) return absl::OkStatus();
    for (const auto& [name, value] : object) {
      const auto given = types_.find(name);
      if (given == types_.end() || Fits(given->second, value)) continue;
      return lines.ErrorAtLine(fmt::format(
          "{} is {}; collection.json says \"field_types\": {{{}: {}}}", base::Quoted(name),
          ValueText(value), base::Quoted(name), base::Quoted(NameOf(given->second))));
    }
    return absl::OkStatus();
  }

 private:
  std::map<std::string, FieldType> types_;
};

// One note a field, of the first few such fields.
std::vector<std::string> MixedNotes(std::string_view display_name,
                                    const std::vector<MixedField>& fields,
                                    const GivenTypes& given_types) {
  constexpr std::size_t kNotesMax = 8;
  std::vector<std::string> notes;
  std::size_t more = 0;
  for (const MixedField& field : fields) {
    if (field.types.empty() || given_types.Has(field.name)) continue;
    if (notes.size() == kNotesMax) {
      ++more;
      continue;
    }
    std::string types;
    for (const auto& [type, row] : field.types) {
      fmt::format_to(std::back_inserter(types), "{}{} in row {}", types.empty() ? "" : ", ", type,
                     base::Grouped(row));
    }
    notes.push_back(
        fmt::format("{}: {} is of several types: {}; filters can only ask whether a "
                    "row has it",
                    display_name, base::Quoted(field.name), types));
  }
  if (more > 0) {
    notes.push_back(
        fmt::format("{}: {} more of several types", display_name, base::Counted(more, "field")));
  }
  return notes;
}

}  // namespace

absl::StatusOr<PayloadFile> ReadPayload(BufferedReader& in, const PayloadRules& rules,
                                        const Limits& limits) {
  const std::optional<ExpectedRows>& expected = rules.expected;
  const std::uint64_t row_count = expected ? expected->count : 0;
  PayloadFile file{.table = {}, .ids = {}, .id_field = rules.id_field, .notes = {}};
  JsonlReader lines(in, limits);
  PayloadTableBuilder table(row_count, limits, rules.keep);
  const GivenTypes given_types(rules.field_types);
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
    if (absl::Status status = given_types.Check(lines, object); !status.ok()) {
      return status;
    }
    if (const absl::Status status = table.Add(object); !status.ok()) {
      return lines.ErrorAtLine(std::string(status.message()));
    }
  }
  if (expected && lines.line() != expected->count) {
    return WrongCount(in, base::Counted(lines.line(), "line"), *expected);
  }
  file.ids = ids ? std::move(*ids).Build() : IdIndex::OfRowNumbers(lines.line());
  file.notes = MixedNotes(in.display_name(), table.MixedFields(), given_types);
  file.table = std::move(table).Build();
  return file;
}

}  // namespace simile::data

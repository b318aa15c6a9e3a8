#include "data/payload/payload_reader.h"

#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "data/faults.h"
#include "data/formats/json_reader.h"
#include "data/formats/jsonl_reader.h"
#include "data/formats/vector_layout.h"
#include "data/payload/id_rules.h"

namespace simile::data {
namespace {

//   blank  JsonlReader::BlankLinesText, since the missing objects may belong there
absl::Status WrongCount(const BufferedReader& in, std::uint64_t lines, const ExpectedRows& expected,
                        const std::string& blank) {
  return absl::InvalidArgumentError(fmt::format(
      "{}: {}, but {}; one object a row is needed{}{}", in.display_name(),
      base::Counted(lines, "line"), expected.WhyNot(lines), blank.empty() ? "" : "; ", blank));
}

// `; did you mean "movieId"?`; empty for no name.
std::string NearText(const std::string& name) {
  return name.empty() ? "" : fmt::format("; did you mean {}?", base::Quoted(name));
}

// One reading of the file. After a fault the lines that follow are still checked, so that one
// reading names all faults, and nothing that was read is kept.
class PayloadReading {
 public:
  PayloadReading(BufferedReader& in, const PayloadRules& rules, const Limits& limits)
      : in_(in),
        rules_(rules),
        limits_(limits),
        lines_(in, limits),
        row_count_(rules.expected ? rules.expected->count : 0),
        table_(row_count_, limits, rules.keep),
        faults_(in.display_name()) {}

  absl::StatusOr<PayloadFile> Read() && {
    if (absl::Status status = ReadLines(); !status.ok()) return lines_.ErrorOfFile(status);
    return std::move(file_);
  }

 private:
  absl::Status ReadLines() {
    file_.id_field = rules_.id_field;
    while (true) {
      const absl::StatusOr<bool> found = lines_.Next(object_);
      if (found.ok() && !*found) break;
      if (found.ok() || lines_.can_go_on()) {
        if (absl::Status status = CheckCount(); !status.ok()) return status;
      }
      const absl::Status added = found.ok() ? AddLine() : found.status();
      if (added.ok()) continue;
      if (!faults_.Add(added)) return added;
      if (!lines_.can_go_on()) break;
      MakeUpIds(lines_.count());
    }
    if (!faults_.empty()) return faults_.ToStatus();
    return Finish();
  }

  std::uint64_t row() const { return lines_.count() - 1; }

  // Refuses the last line when the file has too many lines. Faults of earlier lines are reported
  // before that.
  absl::Status CheckCount() {
    absl::Status status;
    if (rules_.expected && lines_.count() > rules_.expected->count) {
      if (!faults_.empty()) return faults_.ToStatus();
      const std::string blank = lines_.BlankLinesText();
      const absl::StatusOr<std::uint64_t> all = lines_.CountAll();
      if (!all.ok()) return all.status();
      status = WrongCount(in_, *all, *rules_.expected, blank);
    } else if (lines_.count() > limits_.rows_max) {
      status = lines_.ErrorAtLine(
          fmt::format("a collection may have {} rows", base::Grouped(limits_.rows_max)));
    }
    return status.ok() || faults_.empty() ? status : faults_.ToStatus();
  }

  absl::Status AddLine() {
    if (!has_object_) {
      has_object_ = true;
      if (file_.id_field.empty()) file_.id_field = FindIdField(object_);
      if (!file_.id_field.empty()) ids_.emplace(row_count_);
      MakeUpIds(row());
    }
    if (ids_) {
      if (absl::Status status = AddId(); !status.ok()) return status;
    } else {
      missed_.Add(object_);
    }
    const absl::Status added = table_.Add(object_);
    return added.ok() ? added : lines_.ErrorAtLine(std::string(added.message()));
  }

  absl::Status AddId() {
    const PayloadValue* const value = FindField(object_, file_.id_field);
    if (value == nullptr || std::holds_alternative<std::monostate>(value->value)) {
      std::vector<std::string> known;
      for (const auto& [name, member] : object_) known.push_back(name);
      return lines_.ErrorAtLine(fmt::format(
          "has no {}; {}{}", base::Quoted(file_.id_field),
          rules_.id_field.empty() ? "line 1 has its id there, so every line needs it"
                                  : "collection.json says that every line's id is there",
          rules_.id_field.empty() || value != nullptr
              ? ""
              : NearText(base::NearestName(file_.id_field, known))));
    }
    const absl::StatusOr<std::string> id = IdFrom(*value, limits_);
    if (!id.ok()) {
      return lines_.ErrorAtLine(
          fmt::format("{} {}", base::Quoted(file_.id_field), std::string(id.status().message())));
    }
    if (const absl::Status status = ids_->Add(*id); !status.ok()) {
      // Rows that are parts of an item have the item's id, and another one of their own.
      const bool is_guessed = rules_.id_field.empty() && file_.id_field != "id";
      return lines_.ErrorAtLine(fmt::format(
          "row {}: {}; ids must be distinct{}", row(), std::string(status.message()),
          is_guessed ? "; \"id_field\" in collection.json can name another field" : ""));
    }
    return absl::OkStatus();
  }

  // Makes up ids for rows with faults until `rows` rows have an id. Messages about later rows then
  // have the right row numbers.
  void MakeUpIds(std::uint64_t rows) {
    // No id has a control character.
    while (ids_ && ids_->size() < rows) {
      ids_->Add(fmt::format("\x01{}", ids_->size())).IgnoreError();
    }
  }

  absl::Status Finish() {
    if (rules_.expected && lines_.count() != rules_.expected->count) {
      return WrongCount(in_, lines_.count(), *rules_.expected, lines_.BlankLinesText());
    }
    file_.notes = std::move(missed_).Notes(in_.display_name());
    lines_.NoteBlankLines(file_.notes);
    // Where nothing says how many rows there are, a single line may be meant.
    if (!rules_.expected) lines_.NoteForm(file_.notes);
    file_.ids = ids_ ? std::move(*ids_).Build() : IdIndex::OfRowNumbers(lines_.count());
    absl::Status chosen = table_.ChooseTypes(rules_.fields, in_.display_name(), file_.notes);
    if (!chosen.ok()) return chosen;
    file_.table = std::move(table_).Build();
    return absl::OkStatus();
  }

  BufferedReader& in_;
  const PayloadRules& rules_;
  const Limits& limits_;
  JsonlReader lines_;
  const std::uint64_t row_count_;
  PayloadTableBuilder table_;
  FaultList faults_;
  bool has_object_ = false;              // a line was valid, and its fields chose the field of ids
  std::optional<IdIndex::Builder> ids_;  // nothing: ids are row numbers
  MissedIdField missed_;
  PayloadObject object_;
  PayloadFile file_;
};

}  // namespace

std::string ExpectedRows::WhyNot(std::uint64_t found) const {
  if (found != dim || dim < kTransposedDimMin) {
    return fmt::format("{} has {}", said_by, base::Counted(count, "row"));
  }
  return fmt::format("{} has {} of {}, so it looks transposed: save the array's transpose, array.T",
                     said_by, base::Counted(count, "row"), base::Counted(dim, "dimension"));
}

absl::StatusOr<PayloadFile> ReadPayload(BufferedReader& in, const PayloadRules& rules,
                                        const Limits& limits) {
  return PayloadReading(in, rules, limits).Read();
}

}  // namespace simile::data

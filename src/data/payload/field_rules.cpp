#include "data/payload/field_rules.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "data/payload/id_rules.h"

namespace simile::data {
namespace {

constexpr std::string_view kIdField = "id";

// `1 of its 100 values does`, `12 of its 100 values do`.
std::string Share(std::uint64_t count, std::uint64_t all, std::string_view one,
                  std::string_view many) {
  return fmt::format("{} of its {} values {}", base::Grouped(count), base::Grouped(all),
                     count == 1 ? one : many);
}

// `: "N/A" in row 57`, or `, the first is "N/A" in row 57`.
std::string First(const ValueSample& sample) {
  return fmt::format("{} {} in row {}", sample.count == 1 ? ":" : ", the first is",
                     sample.first_text, base::Grouped(sample.first_row));
}

bool AreMost(std::uint64_t values, std::uint64_t all) { return 2 * values > all; }

// The values of a field that filters do not compare; empty when all are of one kind.
std::string SeveralTypes(const FieldInfo& field) {
  std::vector<std::string> samples;
  for (std::size_t kind = 0; kind < kValueKindCount; ++kind) {
    const ValueSample& sample = field.values.Of(static_cast<ValueKind>(kind));
    if (sample.count == 0) continue;
    samples.push_back(
        fmt::format("{} in row {}", sample.first_text, base::Grouped(sample.first_row)));
  }
  if (samples.size() < 2) {
    const ValueSample& lists = field.values.Of(ValueKind::kOther);
    if (lists.count == 0) return {};
    return fmt::format(
        "holds {} in row {}; filters can only ask whether a row has it, and compare "
        "the elements of a list of texts, of numbers or of booleans",
        lists.first_text, base::Grouped(lists.first_row));
  }
  return fmt::format("is of several types: {}; filters can only ask whether a row has it",
                     fmt::join(samples, ", "));
}

// The note that filters do not read lists of objects, and how to write the lists that they read.
std::string ObjectsNote(const FieldInfo& field) {
  std::string note = fmt::format(
      "holds lists of objects, the first in row {}, which filters do not read; a list of one of "
      "their members can be compared",
      base::Grouped(field.values.Of(ValueKind::kObjects).first_row));
  const bool is_plain = std::ranges::all_of(field.name, [](char letter) {
    return absl::ascii_isalnum(static_cast<unsigned char>(letter)) || letter == '_' ||
           letter == '.';
  });
  if (is_plain) {
    note += fmt::format(", which jq -c '.{0}_NAME = [.{0}[]?.NAME]' adds", field.name);
  }
  return note;
}

// A note for an owner who may have meant another type than the guessed one; empty for nothing.
std::string GuessNote(const FieldInfo& field) {
  const FieldValues& values = field.values;
  const std::uint64_t all = values.count();
  ValueSample fractions = values.Of(ValueKind::kFraction);
  if (field.type == FieldType::kNumbers) fractions.Add(values.Of(ValueKind::kFractions));
  if (field.type == FieldType::kOther) {
    return AreMost(values.Of(ValueKind::kObjects).count, all) ? ObjectsNote(field)
                                                              : SeveralTypes(field);
  }
  if (TypeOfElements(field.type) == FieldType::kNumber && 10 * fractions.count <= all) {
    return fmt::format(
        "is of type {}, not {}, because {}{}", NameOf(field.type),
        NameOf(field.type == FieldType::kNumber ? FieldType::kInteger : FieldType::kIntegers),
        Share(fractions.count, all, "has a fraction", "have a fraction"), First(fractions));
  }
  const std::uint64_t times = values.times();
  if (field.type == FieldType::kKeyword && AreMost(times, all)) {
    const ValueSample& others = values.Of(ValueKind::kText);
    return fmt::format(
        "is of type keyword, not time, because {}{}; \"field_types\": {{{}: \"time\"}} in "
        "collection.json makes it a time",
        Share(others.count, all, "is no time", "are no times"), First(others),
        base::Quoted(field.name));
  }
  return {};
}

class Chooser {
 public:
  Chooser(const FieldRules& rules, std::string_view file) : rules_(rules), file_(file) {
    for (const NamedFieldType& named : rules.declared) declared_.emplace(named.field, named.type);
    for (const KeptType& kept : rules.kept.types) kept_.emplace(kept.field, &kept);
  }

  absl::Status Choose(FieldInfo& field) {
    const FieldType guess = field.values.Guess();
    if (field.name == kIdField) return ChooseOfIds(field, guess);
    const KeptType* const kept = FindKept(field.name);
    const std::string declared_separator = FindSeparator(field.name);
    field.separator = declared_separator;
    if (field.separator.empty() && kept != nullptr) field.separator = kept->separator;
    const std::optional<FieldType> declared = FindDeclared(field.name);
    field.type = declared                   ? *declared
                 : !field.separator.empty() ? FieldType::kKeywords
                 : kept != nullptr          ? kept->type
                                            : guess;
    const ValueSample unfit = field.values.UnfitFor(field.type);
    if (AreMost(unfit.count, field.values.count())) {
      if (declared) return DeclaredError(field, unfit, guess);
      if (!rules_.kept.may_change) return KeptError(field, unfit);
      field.type = guess;
      field.separator.clear();
    }
    field.is_kept_otherwise =
        !declared && (field.type != guess || field.separator != declared_separator);
    field.has_lasting_meaning = declared || HasOneReading(field) ||
                                (kept != nullptr && kept->has_lasting_meaning &&
                                 kept->type == field.type && kept->separator == field.separator);
    AddChangeNotes(field, kept, declared.has_value());
    if (!declared && (kept == nullptr || kept->type != field.type)) {
      AddNote(field.name, GuessNote(field));
    }
    AddUnfitNote(field);
    AddReadingNotes(field, declared.has_value());
    return absl::OkStatus();
  }

  // Says which kept fields no row has now.
  void NoteAbsent(const std::map<std::string_view, FieldInfo*>& present) {
    for (const auto& [name, kept] : kept_) {
      if (present.contains(name) || kept->type == FieldType::kOther) continue;
      AddNote(std::string(name), fmt::format("is in no row now; it was {}, and filters on it are "
                                             "refused like filters on an unknown field",
                                             NameOf(kept->type)));
    }
  }

  std::vector<std::string> notes() && {
    if (more_ > 0) {
      notes_.push_back(
          fmt::format("{}: {} more about its fields", file_, base::Counted(more_, "note")));
    }
    return std::move(notes_);
  }

 private:
  // In filters `id` is the item's id, so the type of a payload field of that name matters to groups
  // alone. The type is not kept, and no value is unfit.
  static absl::Status ChooseOfIds(FieldInfo& field, FieldType guess) {
    field.type = field.values.UnfitFor(guess).count == 0 ? guess : FieldType::kOther;
    field.has_lasting_meaning = true;
    return absl::OkStatus();
  }

  static bool HasOneReading(const FieldInfo& field) {
    const bool is_possible = field.type == FieldType::kBoolean ||
                             field.type == FieldType::kInteger || field.type == FieldType::kKeyword;
    return is_possible && field.values.HaveOneReading() &&
           field.values.UnfitFor(field.type).count == 0;
  }

  // The declared type of a field. A field with a separator is a list of keywords.
  std::optional<FieldType> FindDeclared(const std::string& field) const {
    if (!FindSeparator(field).empty()) return FieldType::kKeywords;
    const auto found = declared_.find(field);
    return found == declared_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string FindSeparator(const std::string& field) const {
    const auto found = std::ranges::find(rules_.separators, field, &NamedSeparator::field);
    return found == rules_.separators.end() ? std::string() : found->separator;
  }

  // kOther is not kept: no filter compares its values, so a better type takes nothing away.
  const KeptType* FindKept(const std::string& field) const {
    const auto found = kept_.find(field);
    return found == kept_.end() || found->second->type == FieldType::kOther ? nullptr
                                                                            : found->second;
  }

  void AddChangeNotes(const FieldInfo& field, const KeptType* kept, bool is_declared) {
    if (kept == nullptr) return;
    if (kept->type != field.type) {
      AddNote(field.name,
              fmt::format("is of type {} now{}; it was {}", NameOf(field.type),
                          is_declared ? ", as collection.json says" : "", NameOf(kept->type)));
    } else if (kept->separator != field.separator) {
      AddNote(field.name,
              fmt::format("has {} now, as collection.json says; it had {}",
                          SeparatorText(field.separator), SeparatorText(kept->separator)));
    }
  }

  static std::string SeparatorText(const std::string& separator) {
    return separator.empty() ? "no separator" : "the separator " + base::Quoted(separator);
  }

  absl::Status DeclaredError(const FieldInfo& field, const ValueSample& unfit,
                             FieldType guess) const {
    const std::string says =
        field.separator.empty()
            ? fmt::format("\"field_types\": {{{}: \"{}\"}}", base::Quoted(field.name),
                          NameOf(field.type))
            : fmt::format("\"separators\": {{{}: {}}}", base::Quoted(field.name),
                          base::Quoted(field.separator));
    return absl::InvalidArgumentError(fmt::format(
        "{}: {} does not fit collection.json, which says {}: {}{}{}", file_,
        base::Quoted(field.name), says,
        Share(unfit.count, field.values.count(), "is something else", "are something else"),
        First(unfit),
        guess == FieldType::kOther ? std::string() : fmt::format("; \"{}\" fits", NameOf(guess))));
  }

  absl::Status KeptError(const FieldInfo& field, const ValueSample& unfit) const {
    return base::Error(
        base::ErrorReason::kShapeChange,
        fmt::format(
            "allow_shape_change: {}: {} was last served as {}, and {}{}: filters that callers "
            "saved would no longer mean the same; set it to accept that",
            file_, base::Quoted(field.name), NameOf(field.type),
            Share(unfit.count, field.values.count(), "does not fit", "do not fit"), First(unfit)),
        "allow_shape_change");
  }

  void AddUnfitNote(const FieldInfo& field) {
    const ValueSample unfit = field.values.UnfitFor(field.type);
    if (unfit.count == 0) return;
    AddNote(field.name,
            fmt::format("is of type {}; {}{}", NameOf(field.type),
                        Share(unfit.count, field.values.count(),
                              "does not fit and passes no filter", "do not fit and pass no filter"),
                        First(unfit)));
  }

  // Adds notes on values that can be read in two ways.
  void AddReadingNotes(const FieldInfo& field, bool is_declared) {
    const FieldValues& values = field.values;
    const ValueSample& local = values.Of(ValueKind::kLocalTime);
    if (field.type == FieldType::kTime && local.count > 0) {
      AddNote(field.name,
              fmt::format("is of type time; {}{}",
                          Share(local.count, values.count(), "has no zone and is read as UTC",
                                "have no zone and are read as UTC"),
                          First(local)));
    }
    const bool is_text = field.type == FieldType::kKeyword || field.type == FieldType::kKeywords;
    if (is_text && !is_declared && field.separator.empty()) AddTextNotes(field);
  }

  // Notes on text fields that collection.json does not declare.
  void AddTextNotes(const FieldInfo& field) {
    const FieldValues& values = field.values;
    const auto add = [&](const ValueSample& texts, std::string_view one, std::string_view many,
                         std::string_view advice) {
      AddNote(field.name,
              fmt::format("is of type {}; {}{}; {}", NameOf(field.type),
                          Share(texts.count, values.count(), one, many), First(texts), advice));
    };
    const ValueSample& bars = values.with_bar();
    if (bars.count > 0 && 10 * bars.count >= values.texts()) {
      add(bars, "holds a bar", "hold a bar",
          fmt::format("if the bar separates keywords, add \"separators\": {{{}: \"|\"}} to "
                      "collection.json",
                      base::Quoted(field.name)));
    }
    const auto are_nearly_all = [&values](const ValueSample& texts) {
      return texts.count > 0 && 10 * texts.count >= 9 * values.count();
    };
    // Ids are not compared as numbers.
    if (are_nearly_all(values.number_texts()) && !IsNamedAsId(field.name)) {
      add(values.number_texts(), "is a number as text", "are numbers as text",
          "write them without quotes to compare them as numbers");
    }
    if (are_nearly_all(values.list_texts())) {
      add(values.list_texts(), "is a list as text", "are lists as text",
          "write them as JSON lists to compare their elements");
    }
  }

  void AddNote(const std::string& field, std::string_view what) {
    constexpr std::size_t kNotesMax = 16;
    if (what.empty()) return;
    if (notes_.size() == kNotesMax) {
      ++more_;
      return;
    }
    notes_.push_back(fmt::format("{}: {} {}", file_, base::Quoted(field), what));
  }

  const FieldRules& rules_;
  const std::string_view file_;
  std::map<std::string_view, FieldType> declared_;
  std::map<std::string_view, const KeptType*> kept_;
  std::vector<std::string> notes_;
  std::uint64_t more_ = 0;
};

}  // namespace

absl::Status ChooseFieldTypes(const FieldRules& rules, std::string_view file,
                              std::span<FieldInfo> fields, std::vector<std::string>& notes) {
  Chooser chooser(rules, file);
  std::map<std::string_view, FieldInfo*> by_name;
  for (FieldInfo& field : fields) by_name.emplace(field.name, &field);
  for (const auto& [name, field] : by_name) {
    if (absl::Status status = chooser.Choose(*field); !status.ok()) return status;
  }
  chooser.NoteAbsent(by_name);
  std::ranges::move(std::move(chooser).notes(), std::back_inserter(notes));
  return absl::OkStatus();
}

}  // namespace simile::data

#include "data/field_rules.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::data {
namespace {

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

std::uint64_t TimesOf(const FieldValues& values) {
  return values.Of(ValueKind::kTime).count + values.Of(ValueKind::kLocalTime).count;
}

std::uint64_t TextsOf(const FieldValues& values) {
  return TimesOf(values) + values.Of(ValueKind::kText).count;
}

// The values of a field that filters do not compare; empty when all are of one kind.
std::string SeveralTypes(const FieldInfo& field) {
  std::vector<std::string> samples;
  for (std::size_t kind = 0; kind < kValueKindCount; ++kind) {
    const ValueSample& sample = field.values.Of(static_cast<ValueKind>(kind));
    if (sample.count == 0) continue;
    samples.push_back(
        fmt::format("{} in row {}", sample.first_text, base::Grouped(sample.first_row)));
  }
  if (samples.size() < 2) return {};
  return fmt::format("is of several types: {}; filters can only ask whether a row has it",
                     fmt::join(samples, ", "));
}

// What a person should know who meant a guessed type otherwise; empty for nothing.
std::string GuessNote(const FieldInfo& field) {
  const FieldValues& values = field.values;
  const std::uint64_t all = values.count();
  const ValueSample& fractions = values.Of(ValueKind::kFraction);
  if (field.type == FieldType::kOther) return SeveralTypes(field);
  if (field.type == FieldType::kNumber && 10 * fractions.count <= all) {
    return fmt::format("is of type number, not integer, because {}{}",
                       Share(fractions.count, all, "has a fraction", "have a fraction"),
                       First(fractions));
  }
  const std::uint64_t times = TimesOf(values);
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

// The types given to fields by one source.
class Types {
 public:
  explicit Types(const std::vector<NamedFieldType>& types) {
    for (const NamedFieldType& named : types) types_.emplace(named.field, named.type);
  }
  std::optional<FieldType> Of(const std::string& field) const {
    const auto found = types_.find(field);
    return found == types_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string_view, FieldType> types_;
};

class Chooser {
 public:
  Chooser(const FieldRules& rules, std::string_view file)
      : rules_(rules), file_(file), declared_(rules.declared), kept_(rules.kept.types) {}

  absl::Status Choose(FieldInfo& field) {
    field.separator = SeparatorOf(field.name);
    const std::optional<FieldType> declared =
        field.separator.empty() ? declared_.Of(field.name) : FieldType::kKeywords;
    const std::optional<FieldType> kept = KeptTypeOf(field.name);
    field.is_declared = declared.has_value();
    field.type = declared ? *declared : kept.value_or(field.values.Guess());
    const ValueSample unfit = field.values.UnfitFor(field.type);
    if (AreMost(unfit.count, field.values.count())) {
      if (declared) return DeclaredError(field, unfit);
      if (!rules_.kept.may_change) return KeptError(field, unfit);
      field.type = field.values.Guess();
    }
    if (kept && field.type != *kept) {
      AddNote(field, fmt::format("is of type {} now{}; it was {}", NameOf(field.type),
                                 declared ? ", as collection.json says" : "", NameOf(*kept)));
    }
    if (!declared && field.type != kept) AddNote(field, GuessNote(field));
    AddUnfitNote(field);
    AddReadingNotes(field);
    return absl::OkStatus();
  }

  std::vector<std::string> notes() && {
    if (more_ > 0) {
      notes_.push_back(
          fmt::format("{}: {} more about its fields", file_, base::Counted(more_, "note")));
    }
    return std::move(notes_);
  }

 private:
  std::string SeparatorOf(const std::string& field) const {
    const auto found = std::ranges::find(rules_.separators, field, &NamedSeparator::field);
    return found == rules_.separators.end() ? std::string() : found->separator;
  }

  // kOther is not kept: no filter compares its values, so a better type takes nothing away.
  std::optional<FieldType> KeptTypeOf(const std::string& field) const {
    const std::optional<FieldType> kept = kept_.Of(field);
    return kept == FieldType::kOther ? std::nullopt : kept;
  }

  absl::Status DeclaredError(const FieldInfo& field, const ValueSample& unfit) const {
    const std::string says =
        field.separator.empty()
            ? fmt::format("\"field_types\": {{{}: \"{}\"}}", base::Quoted(field.name),
                          NameOf(field.type))
            : fmt::format("\"separators\": {{{}: {}}}", base::Quoted(field.name),
                          base::Quoted(field.separator));
    return absl::InvalidArgumentError(fmt::format(
        "{}: {} does not fit collection.json, which says {}: {}{}", file_, base::Quoted(field.name),
        says, Share(unfit.count, field.values.count(), "is something else", "are something else"),
        First(unfit)));
  }

  absl::Status KeptError(const FieldInfo& field, const ValueSample& unfit) const {
    return base::Error(
        base::ErrorReason::kShapeChange,
        fmt::format("allow_shape_change: {}: {} is served as {}, and {}{}: filters that callers "
                    "saved would no longer mean the same; set it to accept that",
                    file_, base::Quoted(field.name), NameOf(field.type),
                    Share(unfit.count, field.values.count(), "does not fit", "do not fit"),
                    First(unfit)),
        "allow_shape_change");
  }

  void AddUnfitNote(const FieldInfo& field) {
    const ValueSample unfit = field.values.UnfitFor(field.type);
    if (unfit.count == 0) return;
    AddNote(field,
            fmt::format("is of type {}; {}{}", NameOf(field.type),
                        Share(unfit.count, field.values.count(),
                              "does not fit and passes no filter", "do not fit and pass no filter"),
                        First(unfit)));
  }

  // What was read in one of two ways.
  void AddReadingNotes(const FieldInfo& field) {
    const FieldValues& values = field.values;
    const ValueSample& local = values.Of(ValueKind::kLocalTime);
    if (field.type == FieldType::kTime && local.count > 0) {
      AddNote(field,
              fmt::format("is of type time; {}{}",
                          Share(local.count, values.count(), "has no zone and is read as UTC",
                                "have no zone and are read as UTC"),
                          First(local)));
    }
    const bool is_text = field.type == FieldType::kKeyword || field.type == FieldType::kKeywords;
    const ValueSample& bars = values.with_bar();
    if (is_text && !field.is_declared && bars.count > 0 && 10 * bars.count >= TextsOf(values)) {
      AddNote(field, fmt::format("is of type {}; {}{}; if the bar separates keywords, add "
                                 "\"separators\": {{{}: \"|\"}} to collection.json",
                                 NameOf(field.type),
                                 Share(bars.count, values.count(), "holds a bar", "hold a bar"),
                                 First(bars), base::Quoted(field.name)));
    }
  }

  void AddNote(const FieldInfo& field, std::string_view what) {
    constexpr std::size_t kNotesMax = 16;
    if (what.empty()) return;
    if (notes_.size() == kNotesMax) {
      ++more_;
      return;
    }
    notes_.push_back(fmt::format("{}: {} {}", file_, base::Quoted(field.name), what));
  }

  const FieldRules& rules_;
  const std::string_view file_;
  const Types declared_;
  const Types kept_;
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
  std::ranges::move(std::move(chooser).notes(), std::back_inserter(notes));
  return absl::OkStatus();
}

}  // namespace simile::data

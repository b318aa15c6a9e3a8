#include "data/field_values.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/json_value.h"

namespace simile::data {
namespace {

// A value for a message: a text or a number as written, else what it is.
struct TextOfValue {
  const PayloadValue& value;

  std::string operator()(const std::string& text) const { return base::Quoted(text); }
  std::string operator()(std::int64_t number) const { return fmt::to_string(number); }
  std::string operator()(double number) const { return fmt::to_string(number); }
  std::string operator()(bool boolean) const { return boolean ? "true" : "false"; }
  std::string operator()(const PayloadList& list) const {
    for (const PayloadValue& element : list) {
      if (std::holds_alternative<std::string>(element.value)) continue;
      return fmt::format("a list with {}", Describe(element));
    }
    return "a list of texts";
  }
  template <class Other>
  std::string operator()(const Other& /*other*/) const {
    return std::string(Describe(value));
  }
};

}  // namespace

void ValueSample::Add(Row row, const PayloadValue& value) {
  if (count++ > 0) return;
  first_row = row;
  first_text = std::visit(TextOfValue{value}, value.value);
}

void FieldValues::Add(Row row, const PayloadValue& value) {
  kinds_[static_cast<std::size_t>(KindOf(value))].Add(row, value);
  const auto* const text = std::get_if<std::string>(&value.value);
  if (text != nullptr && text->find('|') != std::string::npos) with_bar_.Add(row, value);
}

std::uint64_t FieldValues::count() const {
  std::uint64_t count = 0;
  for (const ValueSample& kind : kinds_) count += kind.count;
  return count;
}

FieldType FieldValues::Guess() const {
  const std::uint64_t all = count();
  const auto has_most = [all](std::uint64_t values) { return 10 * values >= 9 * all; };
  if (all == 0) return FieldType::kOther;
  if (has_most(Of(ValueKind::kBoolean).count)) return FieldType::kBoolean;
  const std::uint64_t fractions = Of(ValueKind::kFraction).count;
  if (has_most(Of(ValueKind::kWhole).count + fractions)) {
    return fractions == 0 ? FieldType::kInteger : FieldType::kNumber;
  }
  if (has_most(times())) return FieldType::kTime;
  if (has_most(texts())) return FieldType::kKeyword;
  if (has_most(texts() + Of(ValueKind::kTexts).count)) return FieldType::kKeywords;
  return FieldType::kOther;
}

ValueSample FieldValues::UnfitFor(FieldType type) const {
  ValueSample unfit;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const ValueSample& values = kinds_[kind];
    if (values.count == 0 || Fits(type, static_cast<ValueKind>(kind))) continue;
    const std::uint64_t count = unfit.count + values.count;
    if (unfit.count == 0 || values.first_row < unfit.first_row) unfit = values;
    unfit.count = count;
  }
  return unfit;
}

bool FieldValues::HaveOneReading() const {
  const std::uint64_t all = count();
  return all > 0 && (Of(ValueKind::kBoolean).count == all || Of(ValueKind::kWhole).count == all ||
                     (times() < all && texts() == all));
}

}  // namespace simile::data

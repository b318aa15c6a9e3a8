#include "data/field_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <variant>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/json_value.h"

namespace simile::data {
namespace {

constexpr std::string_view kDigits = "0123456789";

// What is in a list: `a list of integers`, `a list with a string and an integer`.
std::string TextOfList(const PayloadList& list) {
  constexpr std::array<std::string_view, 7> kElements = {"nulls", "booleans", "integers", "numbers",
                                                         "texts", "lists",    "objects"};
  switch (KindOf({list})) {
    case ValueKind::kEmptyList:
      return "an empty list";
    case ValueKind::kFractions:
      return "a list of numbers";
    default:
      break;
  }
  const std::size_t first = list.front().value.index();
  for (const PayloadValue& element : list) {
    if (element.value.index() == first) continue;
    return fmt::format("a list with {} and {}", Describe(list.front()), Describe(element));
  }
  return fmt::format("a list of {}", kElements[first]);
}

// Whether a text would be a number of JSON: "30", "-4.5". "007" would be none.
bool IsNumber(std::string_view text) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  const std::size_t end_of_digits = std::min(text.find_first_not_of(kDigits, first), text.size());
  if (end_of_digits <= first || (text[first] == '0' && end_of_digits > first + 1)) return false;
  const bool lacks_fraction = text.substr(end_of_digits).starts_with('.') &&
                              text.find_first_of(kDigits, end_of_digits) != end_of_digits + 1;
  if (lacks_fraction) return false;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Whether a text looks like a list that JSON or Python wrote: "[]", "['rock']", "[1, 2]".
bool IsListAsText(std::string_view text) {
  constexpr std::string_view kOthers = "]\"'[{-";
  return text.starts_with('[') && text.ends_with(']') && text.size() > 1 &&
         (kDigits.find(text[1]) != kDigits.npos || kOthers.find(text[1]) != kOthers.npos);
}

// A value for a message: a text or a number as written, else what it is.
struct TextOfValue {
  const PayloadValue& value;

  std::string operator()(const std::string& text) const { return base::Quoted(text); }
  std::string operator()(std::int64_t number) const { return fmt::to_string(number); }
  std::string operator()(double number) const { return fmt::to_string(number); }
  std::string operator()(bool boolean) const { return boolean ? "true" : "false"; }
  std::string operator()(const PayloadList& list) const { return TextOfList(list); }
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

void ValueSample::Add(const ValueSample& other) {
  if (other.count == 0) return;
  if (count == 0 || other.first_row < first_row) {
    first_row = other.first_row;
    first_text = other.first_text;
  }
  count += other.count;
}

void FieldValues::Add(Row row, const PayloadValue& value) {
  kinds_[static_cast<std::size_t>(KindOf(value))].Add(row, value);
  const auto* const text = std::get_if<std::string>(&value.value);
  if (text == nullptr) return;
  if (text->find('|') != std::string::npos) with_bar_.Add(row, value);
  if (IsNumber(*text)) number_texts_.Add(row, value);
  if (IsListAsText(*text)) list_texts_.Add(row, value);
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
  return GuessOfLists();
}

FieldType FieldValues::GuessOfLists() const {
  const std::uint64_t fractions = Of(ValueKind::kFraction).count + Of(ValueKind::kFractions).count;
  const std::uint64_t numbers =
      fractions + Of(ValueKind::kWhole).count + Of(ValueKind::kWholes).count;
  const std::uint64_t booleans = Of(ValueKind::kBoolean).count + Of(ValueKind::kBooleans).count;
  const std::uint64_t words = texts() + Of(ValueKind::kTexts).count;
  const std::uint64_t most = std::max({words, numbers, booleans});
  // An empty list is one of whatever the others have.
  if (10 * (most + Of(ValueKind::kEmptyList).count) < 9 * count()) return FieldType::kOther;
  if (most == words) return FieldType::kKeywords;
  if (most == booleans) return FieldType::kBooleans;
  return fractions == 0 ? FieldType::kIntegers : FieldType::kNumbers;
}

ValueSample FieldValues::UnfitFor(FieldType type) const {
  ValueSample unfit;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (!Fits(type, static_cast<ValueKind>(kind))) unfit.Add(kinds_[kind]);
  }
  return unfit;
}

bool FieldValues::HaveOneReading() const {
  const std::uint64_t all = count();
  return all > 0 && (Of(ValueKind::kBoolean).count == all || Of(ValueKind::kWhole).count == all ||
                     (times() < all && texts() == all));
}

}  // namespace simile::data

#include "data/payload/field_type.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <system_error>
#include <variant>

#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "data/formats/json_reader.h"

namespace simile::data {
namespace {

constexpr std::array<std::string_view, 10> kNames = {"keyword", "list of keywords",
                                                     "integer", "list of integers",
                                                     "number",  "list of numbers",
                                                     "boolean", "list of booleans",
                                                     "time",    "other"};

template <class Value>
bool Is(const PayloadValue& value) {
  return std::holds_alternative<Value>(value.value);
}

// Beyond 2^53 a double may differ from the integer that was written.
bool IsWhole(double number) { return std::abs(number) < 0x1p53 && std::trunc(number) == number; }

ValueKind KindOfList(const PayloadList& list) {
  if (list.empty()) return ValueKind::kEmptyList;
  if (std::ranges::all_of(list, Is<std::string>)) return ValueKind::kTexts;
  if (std::ranges::all_of(list, Is<bool>)) return ValueKind::kBooleans;
  if (std::ranges::all_of(list, Is<PayloadObject>)) return ValueKind::kObjects;
  const auto is_number = [](const PayloadValue& element) {
    return Is<std::int64_t>(element) || Is<double>(element);
  };
  if (!std::ranges::all_of(list, is_number)) return ValueKind::kOther;
  const auto is_whole = [](const PayloadValue& element) { return ToWhole(element).has_value(); };
  return std::ranges::all_of(list, is_whole) ? ValueKind::kWholes : ValueKind::kFractions;
}

struct KindOfValue {
  ValueKind operator()(std::monostate) const { return ValueKind::kOther; }
  ValueKind operator()(bool) const { return ValueKind::kBoolean; }
  ValueKind operator()(std::int64_t) const { return ValueKind::kWhole; }
  ValueKind operator()(double number) const {
    return IsWhole(number) ? ValueKind::kWhole : ValueKind::kFraction;
  }
  ValueKind operator()(const std::string& text) const {
    if (!ParseTime(text)) return ValueKind::kText;
    return LacksZone(text) ? ValueKind::kLocalTime : ValueKind::kTime;
  }
  ValueKind operator()(const PayloadList& list) const { return KindOfList(list); }
  ValueKind operator()(const PayloadObject&) const { return ValueKind::kObject; }
};

constexpr std::size_t kDayBytes = 10;  // of 2024-05-31
constexpr std::string_view kUtc = " UTC";

// RFC 3339 begins with a year of four digits; absl also takes other lengths and leading spaces.
bool BeginsWithADay(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd";
  return text.size() >= kShape.size() &&
         std::equal(kShape.begin(), kShape.end(), text.begin(), [](char shape, char found) {
           return shape == 'd' ? std::isdigit(static_cast<unsigned char>(found)) != 0
                               : found == shape;
         });
}

constexpr std::string_view kDigits = "0123456789";

// What is in a list: `a list of integers`, `a list with a string and an integer`.
std::string TextOfList(const PayloadList& list) {
  constexpr std::array<std::string_view, 7> kElements = {"nulls", "booleans", "integers", "numbers",
                                                         "texts", "lists",    "objects"};
  switch (ClassifyValue({list})) {
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

std::string_view NameOf(FieldType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<FieldType> ParseFieldType(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<FieldType>(found - kNames.begin());
}

std::span<const std::string_view> FieldTypeNames() { return kNames; }

bool IsList(FieldType type) { return TypeOfElements(type) != type; }

FieldType TypeOfElements(FieldType type) {
  switch (type) {
    case FieldType::kKeywords:
      return FieldType::kKeyword;
    case FieldType::kIntegers:
      return FieldType::kInteger;
    case FieldType::kNumbers:
      return FieldType::kNumber;
    case FieldType::kBooleans:
      return FieldType::kBoolean;
    default:
      return type;
  }
}

ValueKind ClassifyValue(const PayloadValue& value) {
  return std::visit(KindOfValue{}, value.value);
}

bool Fits(FieldType type, ValueKind kind) {
  if (IsList(type) && (kind == ValueKind::kEmptyList || Fits(TypeOfElements(type), kind)))
    return true;
  const bool is_time = kind == ValueKind::kTime || kind == ValueKind::kLocalTime;
  switch (type) {
    case FieldType::kKeyword:
      return is_time || kind == ValueKind::kText;
    case FieldType::kKeywords:
      return kind == ValueKind::kTexts;
    case FieldType::kInteger:
      return kind == ValueKind::kWhole;
    case FieldType::kIntegers:
      return kind == ValueKind::kWholes;
    case FieldType::kNumber:
      return kind == ValueKind::kWhole || kind == ValueKind::kFraction;
    case FieldType::kNumbers:
      return kind == ValueKind::kWholes || kind == ValueKind::kFractions;
    case FieldType::kBoolean:
      return kind == ValueKind::kBoolean;
    case FieldType::kBooleans:
      return kind == ValueKind::kBooleans;
    case FieldType::kTime:
      return is_time;
    case FieldType::kOther:
      return true;
  }
  return false;
}

std::optional<std::int64_t> ToWhole(const PayloadValue& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value.value)) return *whole;
  const auto* const number = std::get_if<double>(&value.value);
  if (number == nullptr || !IsWhole(*number)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<std::int64_t> ParseTime(std::string_view text) {
  if (!BeginsWithADay(text)) return std::nullopt;
  const absl::string_view view(text.data(), text.size());
  absl::Time time;
  const auto reads = [&](const char* format) {
    return absl::ParseTime(format, view, &time, nullptr);
  };
  bool is_read = false;
  if (text.size() == kDayBytes) {
    is_read = reads("%Y-%m-%d");
  } else if (text[kDayBytes] == ' ') {
    is_read = reads("%Y-%m-%d %H:%M:%E*S%Ez") || reads("%Y-%m-%d %H:%M:%E*S") ||
              reads("%Y-%m-%d %H:%M:%E*S UTC") || reads("%Y-%m-%d %H:%M");
  } else {
    is_read =
        reads(absl::RFC3339_full) || reads("%Y-%m-%d%ET%H:%M:%E*S") || reads("%Y-%m-%d%ET%H:%M");
  }
  // absl skips white space at the end.
  const bool ends_well = std::isdigit(static_cast<unsigned char>(text.back())) != 0 ||
                         text.back() == 'Z' || text.back() == 'z' || text.ends_with(kUtc);
  if (!is_read || !ends_well) return std::nullopt;
  return absl::ToUnixMicros(time);
}

bool LacksZone(std::string_view text) {
  return text.size() > kDayBytes && text.back() != 'Z' && text.back() != 'z' &&
         !text.ends_with(kUtc) && text.find_first_of("+-", kDayBytes) == std::string_view::npos;
}

std::string TimeText(std::int64_t microseconds) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E*SZ", absl::FromUnixMicros(microseconds),
                          absl::UTCTimeZone());
}

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
  kinds_[static_cast<std::size_t>(ClassifyValue(value))].Add(row, value);
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
  // An empty list counts as a list of any type.
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

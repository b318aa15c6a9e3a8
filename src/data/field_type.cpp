#include "data/field_type.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "data/time_value.h"

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

// Beyond 2^53 a double may stand for another integer than the one that was written.
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
  const auto is_whole = [](const PayloadValue& element) { return WholeOf(element).has_value(); };
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

}  // namespace

std::string_view NameOf(FieldType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<FieldType> FieldTypeOf(std::string_view name) {
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

ValueKind KindOf(const PayloadValue& value) { return std::visit(KindOfValue{}, value.value); }

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

std::optional<std::int64_t> WholeOf(const PayloadValue& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value.value)) return *whole;
  const auto* const number = std::get_if<double>(&value.value);
  if (number == nullptr || !IsWhole(*number)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

}  // namespace simile::data

#include "data/field_type.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "data/time_value.h"

namespace simile::data {
namespace {

constexpr std::array<std::string_view, 7> kNames = {
    "keyword", "list of keywords", "integer", "number", "boolean", "time", "other"};

bool AllTexts(const PayloadList& list) {
  return std::ranges::all_of(list, [](const PayloadValue& element) {
    return std::holds_alternative<std::string>(element.value);
  });
}

// Beyond 2^53 a double may stand for another integer than the one that was written.
bool IsWhole(double number) { return std::abs(number) < 0x1p53 && std::trunc(number) == number; }

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
  ValueKind operator()(const PayloadList& list) const {
    return AllTexts(list) ? ValueKind::kTexts : ValueKind::kOther;
  }
  ValueKind operator()(const PayloadObject&) const { return ValueKind::kOther; }
};

}  // namespace

std::string_view NameOf(FieldType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<FieldType> FieldTypeOf(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<FieldType>(found - kNames.begin());
}

std::span<const std::string_view> FieldTypeNames() { return kNames; }

ValueKind KindOf(const PayloadValue& value) { return std::visit(KindOfValue{}, value.value); }

bool Fits(FieldType type, ValueKind kind) {
  const bool is_time = kind == ValueKind::kTime || kind == ValueKind::kLocalTime;
  switch (type) {
    case FieldType::kKeyword:
      return is_time || kind == ValueKind::kText;
    case FieldType::kKeywords:
      return is_time || kind == ValueKind::kText || kind == ValueKind::kTexts;
    case FieldType::kInteger:
      return kind == ValueKind::kWhole;
    case FieldType::kNumber:
      return kind == ValueKind::kWhole || kind == ValueKind::kFraction;
    case FieldType::kBoolean:
      return kind == ValueKind::kBoolean;
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

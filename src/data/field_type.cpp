#include "data/field_type.h"

#include <algorithm>
#include <array>
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

}  // namespace

std::string_view NameOf(FieldType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<FieldType> FieldTypeOf(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<FieldType>(found - kNames.begin());
}

bool Fits(FieldType type, const PayloadValue& value) {
  if (std::holds_alternative<std::monostate>(value.value)) return true;
  const auto* const text = std::get_if<std::string>(&value.value);
  const auto* const list = std::get_if<PayloadList>(&value.value);
  const bool whole = std::holds_alternative<std::int64_t>(value.value);
  switch (type) {
    case FieldType::kKeyword:
      return text != nullptr;
    case FieldType::kKeywords:
      return text != nullptr || (list != nullptr && AllTexts(*list));
    case FieldType::kInteger:
      return whole;
    case FieldType::kNumber:
      return whole || std::holds_alternative<double>(value.value);
    case FieldType::kBoolean:
      return std::holds_alternative<bool>(value.value);
    case FieldType::kTime:
      return text != nullptr && ParseTime(*text).has_value();
    case FieldType::kOther:
      return true;
  }
  return false;
}

std::span<const std::string_view> FieldTypeNames() { return kNames; }

}  // namespace simile::data

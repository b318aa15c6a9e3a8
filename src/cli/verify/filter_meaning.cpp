#include "cli/verify/filter_meaning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <variant>

namespace simile::cli {
namespace {

static_assert(std::numeric_limits<WideNumber>::digits >= 64);

constexpr auto kNumberComparisons = std::to_array<NumberComparison>({
    {.symbol = "=", .equal = true},
    {.symbol = "!=", .below = true, .above = true},
    {.symbol = "<", .below = true},
    {.symbol = "<=", .below = true, .equal = true},
    {.symbol = ">", .above = true},
    {.symbol = ">=", .equal = true, .above = true},
});

bool IsMissing(const PayloadValue& value) {
  return std::holds_alternative<std::monostate>(value.value);
}

// The elements of a list of texts; null for any other value.
const PayloadList* TextList(const PayloadValue& value) {
  const auto* const list = std::get_if<PayloadList>(&value.value);
  if (list == nullptr) return nullptr;
  const bool texts = std::ranges::all_of(*list, [](const PayloadValue& element) {
    return std::holds_alternative<std::string>(element.value);
  });
  return texts ? list : nullptr;
}

Passing YesOrNo(bool passes) { return passes ? Passing::kYes : Passing::kNo; }

}  // namespace

Passing Negated(Passing passing) {
  if (passing == Passing::kYes) return Passing::kNo;
  if (passing == Passing::kNo) return Passing::kYes;
  return passing;
}

Passing EqualsText(v1::FieldType type, const PayloadValue& value, std::string_view wanted) {
  if (IsMissing(value)) return Passing::kNo;
  const auto* const text = std::get_if<std::string>(&value.value);
  if (type == v1::FIELD_TYPE_KEYWORD) {
    return text == nullptr ? Passing::kNeither : YesOrNo(*text == wanted);
  }
  // Whatever separates the text, its elements are parts of it.
  if (text != nullptr) {
    return text->find(wanted) == std::string::npos ? Passing::kNo : Passing::kUnknown;
  }
  const PayloadList* const list = TextList(value);
  if (list == nullptr) return Passing::kNeither;
  return YesOrNo(std::ranges::any_of(*list, [&](const PayloadValue& element) {
    return std::get<std::string>(element.value) == wanted;
  }));
}

std::optional<std::vector<std::string>> GroupTexts(v1::FieldType type, const PayloadValue& value) {
  std::vector<std::string> texts;
  const auto* const text = std::get_if<std::string>(&value.value);
  if (text != nullptr && type == v1::FIELD_TYPE_KEYWORD_LIST) return std::nullopt;
  if (text != nullptr) texts.push_back(*text);
  const PayloadList* const list = type == v1::FIELD_TYPE_KEYWORD ? nullptr : TextList(value);
  if (list == nullptr) return texts;
  for (const PayloadValue& element : *list) texts.push_back(std::get<std::string>(element.value));
  return texts;
}

std::optional<std::string> AsciiFolded(std::string_view text) {
  std::string folded;
  for (const char byte : text) {
    if (byte < ' ' || byte > '~') return std::nullopt;
    if (byte == ' ' && (folded.empty() || folded.back() == ' ')) return std::nullopt;
    folded += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
  }
  if (folded.ends_with(' ')) return std::nullopt;
  return folded;
}

Passing HasText(v1::FieldType type, const PayloadValue& value, std::string_view wanted) {
  if (IsMissing(value)) return Passing::kNo;
  const auto* const text = std::get_if<std::string>(&value.value);
  if (type == v1::FIELD_TYPE_KEYWORD) {
    if (text == nullptr) return Passing::kNeither;
    const std::optional<std::string> folded = AsciiFolded(*text);
    return folded ? YesOrNo(folded->find(wanted) != std::string::npos) : Passing::kUnknown;
  }
  if (text != nullptr) return Passing::kUnknown;
  const PayloadList* const list = TextList(value);
  if (list == nullptr) return Passing::kNeither;
  Passing passing = Passing::kNo;
  for (const PayloadValue& element : *list) {
    const std::optional<std::string> folded = AsciiFolded(std::get<std::string>(element.value));
    if (folded && *folded == wanted) return Passing::kYes;
    if (!folded) passing = Passing::kUnknown;
  }
  return passing;
}

std::optional<WideNumber> NumberOf(v1::FieldType type, const PayloadValue& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value.value)) return *whole;
  const auto* const number = std::get_if<double>(&value.value);
  if (number == nullptr) return std::nullopt;
  const bool is_integer = std::floor(*number) == *number && std::abs(*number) < 0x1p63;
  if (type == v1::FIELD_TYPE_INTEGER && !is_integer) return std::nullopt;
  return *number;
}

std::span<const NumberComparison> NumberComparisons() { return kNumberComparisons; }

Passing Compares(v1::FieldType type, const PayloadValue& value, const NumberComparison& comparison,
                 WideNumber bound) {
  if (IsMissing(value)) return Passing::kNo;
  const std::optional<WideNumber> number = NumberOf(type, value);
  if (!number) return Passing::kNeither;
  return YesOrNo(*number < bound   ? comparison.below
                 : *number > bound ? comparison.above
                                   : comparison.equal);
}

}  // namespace simile::cli

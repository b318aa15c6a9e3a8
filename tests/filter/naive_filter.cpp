#include "filter/naive_filter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "data/payload/field_type.h"
#include "filter/operators.h"
#include "filter/text_index.h"

namespace simile::filter {
namespace {

const PayloadValue* FindValue(const PayloadObject& row, const std::string& field) {
  for (const auto& [name, value] : row) {
    if (name == field && !std::holds_alternative<std::monostate>(value.value)) return &value;
  }
  const std::size_t dot = field.find('.');
  if (dot == std::string::npos) return nullptr;
  const PayloadValue* const value = FindValue(row, field.substr(0, dot));
  const auto* const object = value == nullptr ? nullptr : std::get_if<PayloadObject>(&value->value);
  return object == nullptr ? nullptr : FindValue(*object, field.substr(dot + 1));
}

// By the symbol alone, because the rest of the table of operators is under test.
template <class Value>
bool Holds(std::string_view symbol, const Value& left, const Value& right) {
  if (symbol == "=") return left == right;
  if (symbol == "!=") return left != right;
  if (symbol == "<") return left < right;
  if (symbol == "<=") return left <= right;
  if (symbol == ">") return left > right;
  if (symbol == ">=") return left >= right;
  std::abort();
}

std::vector<std::string> ReadKeywords(const std::string& field, const PayloadValue& value) {
  std::vector<std::string> keywords;
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    for (const PayloadValue& element : *list)
      keywords.push_back(std::get<std::string>(element.value));
    return keywords;
  }
  const std::string text = std::get<std::string>(value.value);
  if (field != "tags") return {text};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('|', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t first = part.find_first_not_of(" \t");
    if (first != std::string::npos) {
      keywords.push_back(part.substr(first, part.find_last_not_of(" \t") - first + 1));
    }
    begin = end + 1;
  }
  return keywords;
}

bool KeywordPasses(const Expression& expression, std::string_view symbol, FieldType type,
                   const PayloadValue& value, const std::string& wanted) {
  const auto is_wanted = [&](const std::string& keyword) {
    if (expression.is_folded) return EqualFolded(keyword, wanted);
    if (symbol != ":") return keyword == wanted;
    const std::string folded = FoldText(keyword);
    return type == FieldType::kKeyword ? folded.find(FoldText(wanted)) != std::string::npos
                                       : folded == FoldText(wanted);
  };
  return std::ranges::any_of(ReadKeywords(expression.field, value), is_wanted) == (symbol != "!=");
}

// In long double every integer and every double is itself.
long double ToNumber(const PayloadValue& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value.value)) return *whole;
  return std::get<double>(value.value);
}

bool IsWhole(const PayloadValue& value) {
  const auto* const number = std::get_if<double>(&value.value);
  return std::holds_alternative<std::int64_t>(value.value) ||
         (number != nullptr && *number == std::floor(*number));
}
bool IsNumber(const PayloadValue& value) {
  return IsWhole(value) || std::holds_alternative<double>(value.value);
}
bool IsBoolean(const PayloadValue& value) { return std::holds_alternative<bool>(value.value); }
bool IsText(const PayloadValue& value) { return std::holds_alternative<std::string>(value.value); }

// The elements of a list, or the value itself.
PayloadList ToElements(const PayloadValue& value) {
  const auto* const list = std::get_if<PayloadList>(&value.value);
  return list == nullptr ? PayloadList{value} : *list;
}

// By the type of the value alone.
bool Fits(FieldType type, const PayloadValue& value) {
  switch (type) {
    case FieldType::kKeyword:
      return IsText(value);
    case FieldType::kKeywords:
      return std::ranges::all_of(ToElements(value), IsText);
    case FieldType::kInteger:
      return IsWhole(value);
    case FieldType::kIntegers:
      return std::ranges::all_of(ToElements(value), IsWhole);
    case FieldType::kNumber:
      return IsNumber(value);
    case FieldType::kNumbers:
      return std::ranges::all_of(ToElements(value), IsNumber);
    case FieldType::kTime:
      return IsText(value) && data::ParseTime(std::get<std::string>(value.value)).has_value();
    case FieldType::kBoolean:
      return IsBoolean(value);
    case FieldType::kBooleans:
      return std::ranges::all_of(ToElements(value), IsBoolean);
    case FieldType::kOther:
      break;
  }
  return true;
}

bool ValuePasses(const Expression& expression, std::string_view symbol, FieldType type,
                 const PayloadValue& value, const Literal& literal);

// Whether some element passes; `!=` asks that none is equal.
bool ElementPasses(const Expression& expression, std::string_view symbol, FieldType type,
                   const PayloadValue& value, const Literal& literal) {
  const FieldType of_element =
      type == FieldType::kBooleans ? FieldType::kBoolean : FieldType::kNumber;
  const bool is_equality = symbol == ":" || symbol == "!=";
  return std::ranges::any_of(ToElements(value), [&](const PayloadValue& element) {
           return ValuePasses(expression, is_equality ? "=" : symbol, of_element, element, literal);
         }) == (symbol != "!=");
}

bool ValuePasses(const Expression& expression, std::string_view symbol, FieldType type,
                 const PayloadValue& value, const Literal& literal) {
  switch (type) {
    case FieldType::kKeyword:
    case FieldType::kKeywords:
      return KeywordPasses(expression, symbol, type, value, literal.text);
    case FieldType::kInteger:
    case FieldType::kNumber:
      return Holds(symbol, ToNumber(value), std::strtold(literal.text.c_str(), nullptr));
    case FieldType::kTime:
      return Holds(symbol, data::ParseTime(std::get<std::string>(value.value)).value(),
                   data::ParseTime(literal.text).value());
    case FieldType::kBoolean:
      return Holds(symbol, std::get<bool>(value.value), FoldText(literal.text) == "true");
    case FieldType::kIntegers:
    case FieldType::kNumbers:
    case FieldType::kBooleans:
      return ElementPasses(expression, symbol, type, value, literal);
    case FieldType::kOther:
      break;
  }
  std::abort();
}

// A condition: has, a comparison or IN.
std::optional<bool> ConditionPasses(const Expression& expression, const std::string& id,
                                    const PayloadObject& row, TypeOfField type_of) {
  const bool is_has = expression.kind == Expression::Kind::kHas;
  const std::string_view symbol =
      expression.kind == Expression::Kind::kCompare ? expression.comparison->symbol : "=";
  if (expression.field == "id") {
    return is_has || std::ranges::any_of(expression.literals, [&](const Literal& literal) {
             return Holds(symbol, id, literal.text);
           });
  }
  const PayloadValue* const value = FindValue(row, expression.field);
  if (value == nullptr) return false;
  const FieldType type = type_of(expression.field);
  if (!Fits(type, *value)) return std::nullopt;
  return is_has || std::ranges::any_of(expression.literals, [&](const Literal& literal) {
           return ValuePasses(expression, symbol, type, *value, literal);
         });
}

// AND of all, or OR of all: `decisive` alone decides, and else what is open leaves all open.
std::optional<bool> Joined(const std::vector<std::optional<bool>>& parts, bool decisive) {
  if (std::ranges::find(parts, std::optional(decisive)) != parts.end()) return decisive;
  const auto is_unknown = [](const std::optional<bool>& part) { return !part.has_value(); };
  if (std::ranges::any_of(parts, is_unknown)) return std::nullopt;
  return !decisive;
}

}  // namespace

std::optional<bool> NaivelyPasses(const Expression& expression, const std::string& id,
                                  const PayloadObject& row, TypeOfField type_of) {
  std::vector<std::optional<bool>> children;
  for (const Expression& child : expression.children) {
    children.push_back(NaivelyPasses(child, id, row, type_of));
  }
  switch (expression.kind) {
    case Expression::Kind::kAnd:
      return Joined(children, false);
    case Expression::Kind::kOr:
      return Joined(children, true);
    case Expression::Kind::kNot:
      if (!children.front()) return std::nullopt;
      return !*children.front();
    case Expression::Kind::kHas:
    case Expression::Kind::kCompare:
    case Expression::Kind::kIn:
      return ConditionPasses(expression, id, row, type_of);
  }
  std::abort();
}

}  // namespace simile::filter

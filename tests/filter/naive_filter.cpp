#include "filter/naive_filter.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "data/time_value.h"
#include "filter/operators.h"
#include "filter/text_index.h"

namespace simile::filter {
namespace {

const PayloadValue* ValueOf(const PayloadObject& row, const std::string& field) {
  for (const auto& [name, value] : row) {
    if (name == field && !std::holds_alternative<std::monostate>(value.value)) return &value;
  }
  return nullptr;
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

std::vector<std::string> FoldedKeywords(FieldType type, const PayloadValue& value) {
  std::vector<std::string> keywords;
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    for (const PayloadValue& element : *list)
      keywords.push_back(FoldText(std::get<std::string>(element.value)));
    return keywords;
  }
  std::string text = std::get<std::string>(value.value);
  if (type == FieldType::kKeyword) return {FoldText(text)};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('|', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    if (part.find_first_not_of(" \t") != std::string::npos) keywords.push_back(FoldText(part));
    begin = end + 1;
  }
  return keywords;
}

bool KeywordPasses(std::string_view symbol, FieldType type, const PayloadValue& value,
                   const std::string& wanted) {
  const std::vector<std::string> keywords = FoldedKeywords(type, value);
  const std::string folded = FoldText(wanted);
  const auto is_wanted = [&](const std::string& keyword) {
    return symbol == ":" && type == FieldType::kKeyword ? keyword.find(folded) != std::string::npos
                                                        : keyword == folded;
  };
  return std::ranges::any_of(keywords, is_wanted) == (symbol != "!=");
}

// In long double every integer and every double is itself.
long double NumberOf(const PayloadValue& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value.value)) return *whole;
  return std::get<double>(value.value);
}

bool ValuePasses(std::string_view symbol, FieldType type, const PayloadValue& value,
                 const Literal& literal) {
  switch (type) {
    case FieldType::kKeyword:
    case FieldType::kKeywords:
      return KeywordPasses(symbol, type, value, literal.text);
    case FieldType::kInteger:
    case FieldType::kNumber:
      return Holds(symbol, NumberOf(value), std::strtold(literal.text.c_str(), nullptr));
    case FieldType::kTime:
      return Holds(symbol, data::ParseTime(std::get<std::string>(value.value)).value(),
                   data::ParseTime(literal.text).value());
    case FieldType::kBoolean:
      return Holds(symbol, std::get<bool>(value.value), FoldText(literal.text) == "true");
    case FieldType::kOther:
      break;
  }
  std::abort();
}

bool ComparisonPasses(const Expression& expression, const std::string& id, const PayloadObject& row,
                      TypeOfField type_of) {
  const std::string_view symbol =
      expression.kind == Expression::Kind::kIn ? "=" : expression.comparison->symbol;
  return std::ranges::any_of(expression.literals, [&](const Literal& literal) {
    if (expression.field == "id") return Holds(symbol, id, literal.text);
    const PayloadValue* const value = ValueOf(row, expression.field);
    return value != nullptr && ValuePasses(symbol, type_of(expression.field), *value, literal);
  });
}

}  // namespace

bool NaivelyPasses(const Expression& expression, const std::string& id, const PayloadObject& row,
                   TypeOfField type_of) {
  const auto passes = [&](const Expression& child) {
    return NaivelyPasses(child, id, row, type_of);
  };
  switch (expression.kind) {
    case Expression::Kind::kAnd:
      return std::ranges::all_of(expression.children, passes);
    case Expression::Kind::kOr:
      return std::ranges::any_of(expression.children, passes);
    case Expression::Kind::kNot:
      return !passes(expression.children.front());
    case Expression::Kind::kHas:
      return expression.field == "id" || ValueOf(row, expression.field) != nullptr;
    case Expression::Kind::kCompare:
    case Expression::Kind::kIn:
      return ComparisonPasses(expression, id, row, type_of);
  }
  std::abort();
}

}  // namespace simile::filter

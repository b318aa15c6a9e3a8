#include "filter/expression.h"

#include <cassert>
#include <string_view>

#include "filter/lexer.h"

namespace simile::filter {
namespace {

using Kind = Expression::Kind;

std::string LiteralText(const Literal& literal) {
  assert(literal.quoted || (IsWord(literal.text) && !IsKeyword(literal.text)));
  return literal.quoted ? WriteQuoted(literal.text) : literal.text;
}

std::string CompareText(const Expression& expression) {
  assert(expression.literals.size() == 1);
  const std::string field = FieldText(expression.field);
  const std::string value = LiteralText(expression.literals.front());
  if (expression.comparison == Comparison::kContains) return field + ':' + value;
  return field + ' ' + SymbolOf(expression.comparison) + ' ' + value;
}

std::string InText(const Expression& expression, std::string_view in) {
  std::string text = FieldText(expression.field);
  text += in;
  text += '[';
  std::string_view between;
  for (const Literal& literal : expression.literals) {
    text += between;
    text += LiteralText(literal);
    between = ", ";
  }
  text += ']';
  return text;
}

std::string OperandText(const Expression& operand) {
  const bool joined = operand.kind == Kind::kAnd || operand.kind == Kind::kOr;
  return joined ? '(' + ToText(operand) + ')' : ToText(operand);
}

std::string NotText(const Expression& expression) {
  assert(expression.children.size() == 1);
  const Expression& child = expression.children.front();
  return child.kind == Kind::kIn ? InText(child, " NOT IN ") : "NOT " + OperandText(child);
}

std::string JoinText(const Expression& expression, std::string_view join) {
  std::string text;
  for (const Expression& child : expression.children) {
    if (!text.empty()) text += join;
    text += OperandText(child);
  }
  return text;
}

}  // namespace

// Bare where the parser would take it for this field: a number on the left looks like a value that
// was written before its field, and a leading - like a negation.
std::string FieldText(std::string_view field) {
  const bool bare =
      IsWord(field) && !IsKeyword(field) && !IsNumber(field) && !field.starts_with('-');
  return bare ? std::string(field) : WriteQuoted(field);
}

const char* SymbolOf(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual:
      return "=";
    case Comparison::kNotEqual:
      return "!=";
    case Comparison::kLess:
      return "<";
    case Comparison::kLessOrEqual:
      return "<=";
    case Comparison::kGreater:
      return ">";
    case Comparison::kGreaterOrEqual:
      return ">=";
    case Comparison::kContains:
      return ":";
  }
  return "";
}

// Recurses as deep as the expression nests, which Parse bounds.
std::string ToText(const Expression& expression) {
  switch (expression.kind) {
    case Kind::kAnd:
      return JoinText(expression, " AND ");
    case Kind::kOr:
      return JoinText(expression, " OR ");
    case Kind::kNot:
      return NotText(expression);
    case Kind::kCompare:
      return CompareText(expression);
    case Kind::kIn:
      return InText(expression, " IN ");
    case Kind::kHas:
      return "has(" + FieldText(expression.field) + ')';
  }
  return "";
}

}  // namespace simile::filter

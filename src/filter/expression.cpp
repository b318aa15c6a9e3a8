#include "filter/expression.h"

#include <cassert>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "filter/lexer.h"
#include "filter/operators.h"

namespace simile::filter {
namespace {

std::string LiteralText(const Literal& literal) {
  assert(literal.quoted || (IsWord(literal.text) && !IsKeyword(literal.text)));
  return literal.quoted ? WriteQuoted(literal.text) : literal.text;
}

// What a condition compares: `title`, `folded(title)`.
std::string ComparedText(const Expression& expression) {
  const std::string field = FieldText(expression.field);
  return expression.is_folded ? fmt::format("folded({})", field) : field;
}

std::string InText(const Expression& expression, std::string_view in) {
  std::vector<std::string> literals;
  for (const Literal& literal : expression.literals) literals.push_back(LiteralText(literal));
  return fmt::format("{}{}[{}]", ComparedText(expression), in, fmt::join(literals, ", "));
}

std::string OperandText(const Expression& operand) {
  const bool joined =
      operand.kind == Expression::Kind::kAnd || operand.kind == Expression::Kind::kOr;
  return joined ? '(' + ToText(operand) + ')' : ToText(operand);
}

std::string NotText(const Expression& expression) {
  assert(expression.children.size() == 1);
  const Expression& child = expression.children.front();
  return child.kind == Expression::Kind::kIn ? InText(child, " NOT IN ")
                                             : "NOT " + OperandText(child);
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

// Bare when the parser reads the word as a field. The parser reads a number on the left as a value
// written before its field, and a leading - as a negation.
std::string FieldText(std::string_view field) {
  const bool bare =
      IsWord(field) && !IsKeyword(field) && !IsNumber(field) && !field.starts_with('-');
  return bare ? std::string(field) : WriteQuoted(field);
}

// Recurses as deep as the expression nests, which Parse bounds.
std::string ToText(const Expression& expression) {
  switch (expression.kind) {
    case Expression::Kind::kAnd:
      return JoinText(expression, " AND ");
    case Expression::Kind::kOr:
      return JoinText(expression, " OR ");
    case Expression::Kind::kNot:
      return NotText(expression);
    case Expression::Kind::kCompare:
      assert(expression.literals.size() == 1);
      return ComparisonText(ComparedText(expression), *expression.comparison,
                            LiteralText(expression.literals.front()));
    case Expression::Kind::kIn:
      return InText(expression, " IN ");
    case Expression::Kind::kHas:
      return "has(" + FieldText(expression.field) + ')';
  }
  return "";
}

absl::Status RefuseAt(std::uint32_t column, std::string_view what) {
  return base::Error(base::ErrorReason::kInvalidFilter, fmt::format("column {}: {}", column, what));
}

}  // namespace simile::filter

#include "filter/parser.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "filter/expression.h"
#include "filter/lexer.h"
#include "filter/operators.h"
#include "filter/parser_state.h"

namespace simile::filter {
namespace {

Expression Begun(Expression::Kind kind, std::uint32_t column, std::string field = {}) {
  Expression expression;
  expression.kind = kind;
  expression.column = column;
  expression.field = std::move(field);
  return expression;
}

Expression Negated(Expression child, std::uint32_t column) {
  Expression expression = Begun(Expression::Kind::kNot, column);
  expression.children.push_back(std::move(child));
  return expression;
}

Expression Joined(Kind join, std::vector<Operand> operands, std::uint32_t column) {
  const auto kind = join == Kind::kAnd ? Expression::Kind::kAnd : Expression::Kind::kOr;
  Expression expression = Begun(kind, column);
  for (Operand& operand : operands) {
    std::vector<Expression>& inner = operand.expression.children;
    if (operand.expression.kind != kind) {
      expression.children.push_back(std::move(operand.expression));
    } else {
      std::move(inner.begin(), inner.end(), std::back_inserter(expression.children));
    }
  }
  return expression;
}

}  // namespace

absl::StatusOr<Expression> Parser::ReadJoined(const Token* opened) {
  const std::uint32_t column = Next().column;
  std::vector<Operand> operands;
  std::vector<Kind> joins;
  std::vector<std::uint32_t> columns;
  for (;;) {
    const Token& first = Next();
    absl::StatusOr<Expression> operand = ReadOperand();
    if (!operand.ok()) return operand.status();
    operands.push_back({std::move(*operand), Excerpt(Between(first, Last()))});
    if (Next().kind != Kind::kAnd && Next().kind != Kind::kOr) break;
    joins.push_back(Next().kind);
    columns.push_back(Advance().column);
  }
  if (absl::Status status = CheckEnd(opened); !status.ok()) return status;
  if (joins.empty()) return std::move(operands.front().expression);
  if (std::count(joins.begin(), joins.end(), joins.front()) !=
      static_cast<std::ptrdiff_t>(joins.size())) {
    return MixedError(operands, joins, columns);
  }
  return Joined(joins.front(), std::move(operands), column);
}

absl::StatusOr<Expression> Parser::ReadOperand() {
  if (Next().kind == Kind::kNot || Next().kind == Kind::kOpenParenthesis) return ReadNested();
  if (!IsValue(Next())) return OperandError();
  if (IsCall("has")) return ReadHas();
  if (IsCall("folded")) return ReadFolded();
  return ReadCondition();
}

absl::StatusOr<Expression> Parser::ReadNested() {
  const Token& outer = Next();
  if (depth_ == kFilterDepthMax) {
    return RefuseAt(outer.column, fmt::format("parentheses and NOTs are nested more than {} deep",
                                              kFilterDepthMax));
  }
  Advance();
  ++depth_;
  const bool negated = outer.kind == Kind::kNot;
  absl::StatusOr<Expression> inner = negated ? ReadOperand() : ReadJoined(&outer);
  if (!inner.ok()) return inner;
  --depth_;
  if (negated) return Negated(std::move(*inner), outer.column);
  Advance();  // the closing parenthesis
  return inner;
}

absl::StatusOr<Expression> Parser::ReadHas() {
  const std::uint32_t column = Next().column;
  const absl::StatusOr<const Token*> field = ReadFieldOfCall();
  if (!field.ok()) return field.status();
  return Begun(Expression::Kind::kHas, column, (*field)->text);
}

absl::StatusOr<Expression> Parser::ReadFolded() {
  const std::uint32_t column = Next().column;
  const absl::StatusOr<const Token*> field = ReadFieldOfCall();
  if (!field.ok()) return field.status();
  const bool is_negated_in = Next().kind == Kind::kNot && Next(1).kind == Kind::kIn;
  const bool is_equality = Next().kind == Kind::kComparison && Next().op->equality();
  if (!is_equality && !is_negated_in && Next().kind != Kind::kIn) {
    return Expected(fmt::format("=, != or IN after folded({})", Excerpt(**field)));
  }
  absl::StatusOr<Expression> condition = ReadComparison(**field);
  if (!condition.ok()) return condition;
  Expression& compared = is_negated_in ? condition->children.front() : *condition;
  compared.is_folded = true;
  condition->column = compared.column = column;
  return condition;
}

absl::StatusOr<const Token*> Parser::ReadFieldOfCall() {
  const Token& function = Advance();
  const Token& open = Advance();
  if (!IsValue(Next())) {
    if (Next().kind == Kind::kEnd) return UnclosedError(open);
    return Expected(fmt::format("a field in {}(...)", Excerpt(function)));
  }
  const Token& field = Advance();
  if (Next().kind == Kind::kEnd) return UnclosedError(open);
  if (Next().kind != Kind::kCloseParenthesis) {
    const bool words = field.kind == Kind::kWord && Next().kind == Kind::kWord;
    return Expected(fmt::format(") after {}({}", Excerpt(function), Excerpt(field)),
                    words ? "; a field of several words needs quotes" : "");
  }
  Advance();
  return &field;
}

absl::StatusOr<Expression> Parser::ReadCondition() {
  const Token& field = Advance();
  if (IsBareNumber(field)) return NumberError(field);
  if (field.kind == Kind::kWord && field.text.starts_with('-')) return NegationError(field);
  return ReadComparison(field);
}

absl::StatusOr<Expression> Parser::ReadComparison(const Token& field) {
  if (Next().kind == Kind::kComparison) return ReadCompare(field);
  if (Next().kind == Kind::kIn) return ReadIn(field);
  if (Next().kind == Kind::kNot && Next(1).kind == Kind::kIn) {
    Advance();
    absl::StatusOr<Expression> in = ReadIn(field);
    if (!in.ok()) return in;
    return Negated(std::move(*in), field.column);
  }
  return OperatorError(field);
}

absl::StatusOr<Expression> Parser::ReadCompare(const Token& field) {
  const Token& comparison = Advance();
  if (comparison.written == ":" && Next().kind == Kind::kStar) {
    return ReadStar(field);
  }
  if (!IsValue(Next())) return ValueError(field, comparison);
  if (IsBare(Next(), "null")) return NullError(field, comparison);
  const Token& value = Next();
  Expression expression = Begun(Expression::Kind::kCompare, field.column, field.text);
  expression.comparison = comparison.op;
  expression.literals.push_back(ReadLiteral());
  if (Next().kind == Kind::kComparison) return ChainError(field, comparison, value);
  last_field_ = &field;
  last_comparison_ = &comparison;
  return expression;
}

absl::StatusOr<Expression> Parser::ReadStar(const Token& field) {
  const Token& star = Advance();
  if (IsValue(Next()) && Touch(star, Next())) {
    return RefuseAt(star.column, fmt::format(": finds parts of a text without *; write {}:{}",
                                             Excerpt(field), Excerpt(Next())));
  }
  return Begun(Expression::Kind::kHas, field.column, field.text);
}

absl::StatusOr<Expression> Parser::ReadIn(const Token& field) {
  const Token& in = Advance();
  if (Next().kind != Kind::kOpenBracket) return ListError(field, in);
  const Token& open = Advance();
  Expression expression = Begun(Expression::Kind::kIn, field.column, field.text);
  for (;;) {
    if (!IsValue(Next()) || IsBare(Next(), "null")) return ItemError(open);
    expression.literals.push_back(ReadLiteral());
    if (Next().kind == Kind::kCloseBracket) break;
    if (Next().kind == Kind::kEnd) return UnclosedError(open);
    if (IsCutByColon(Last())) return ColonError(Last());
    if (Next().kind != Kind::kComma) {
      const bool words = Last().kind == Kind::kWord && Next().kind == Kind::kWord;
      return Expected(fmt::format(", or ] for the [ at column {}", open.column),
                      words ? "; a value of several words needs quotes" : "");
    }
    Advance();
  }
  Advance();
  return expression;
}

Literal Parser::ReadLiteral() {
  const Token& token = Advance();
  return {.text = token.text, .quoted = token.kind == Kind::kString, .column = token.column};
}

absl::Status Parser::CheckEnd(const Token* opened) const {
  const Kind found = Next().kind;
  if (found == (opened == nullptr ? Kind::kEnd : Kind::kCloseParenthesis)) {
    return absl::OkStatus();
  }
  if (found == Kind::kEnd) return UnclosedError(*opened);
  if (found == Kind::kCloseParenthesis) {
    return RefuseAt(Next().column, "this ) closes nothing; no ( is open before it");
  }
  return Expected(opened == nullptr
                      ? "AND, OR or the end"
                      : fmt::format("AND, OR or ) for the ( at column {}", opened->column),
                  MissingJoinHint());
}

absl::StatusOr<Expression> Parse(std::string_view text) {
  if (text.size() > kFilterBytesMax) {
    return RefuseAt(1, fmt::format("the filter has {} bytes; at most {} are taken",
                                   base::Grouped(text.size()), base::Grouped(kFilterBytesMax)));
  }
  return Parser(text).Read();
}

}  // namespace simile::filter

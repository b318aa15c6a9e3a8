#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "filter/expression.h"
#include "filter/lexer.h"
#include "filter/refusal.h"

// The inside of parser.h: how parser.cpp, which reads, and parser_errors.cpp, which says what is
// wrong, share the place in the text. For these two files alone.
namespace simile::filter {

using Kind = Token::Kind;

// A piece of the filter on one line of a message, cut where it would no longer be read.
std::string Shown(std::string_view written);
std::string Shown(const Token& token);

// What stands between AND, OR and parentheses.
struct Operand {
  Expression expression;
  std::string shown;
};

// REQUIRES: joins holds both AND and OR; columns are theirs.
absl::Status MixedError(const std::vector<Operand>& operands, const std::vector<Kind>& joins,
                        const std::vector<std::uint32_t>& columns);

// Reads one filter, token by token. What begins with Take moves on; what ends in Error says what is
// wrong with the token that does not fit, and leaves the place as it is. Used once.
class Parser {
 public:
  explicit Parser(std::string_view filter) : filter_(filter), tokens_(Tokenize(filter)) {}

  // All of the filter.
  absl::StatusOr<Expression> Take() {
    if (Next().kind == Kind::kEnd) {
      return RefuseAt(1, "the filter is empty; leave it out to ask for every item");
    }
    return TakeJoined(nullptr);
  }

 private:
  // Operands joined by AND or by OR, up to the end or to what closes `opened`, which stays.
  absl::StatusOr<Expression> TakeJoined(const Token* opened);
  absl::StatusOr<Expression> TakeOperand();
  absl::StatusOr<Expression> TakeNested();
  absl::StatusOr<Expression> TakeHas();
  absl::StatusOr<Expression> TakeCondition();
  absl::StatusOr<Expression> TakeCompare(const Token& field);
  absl::StatusOr<Expression> TakeStar(const Token& field);
  absl::StatusOr<Expression> TakeIn(const Token& field);
  Literal TakeLiteral();

  // What is wrong where something else was expected. Next() is the first token that does not fit.
  absl::Status Expected(std::string_view what, std::string_view hint = "") const;
  absl::Status UnclosedError(const Token& opened) const;
  absl::Status OperandError() const;
  absl::Status NumberError(const Token& number) const;
  absl::Status NegationError(const Token& word) const;
  absl::Status OperatorError(const Token& field) const;
  absl::Status LoneError(const Token& field) const;
  absl::Status HabitError(const Token& field, std::string_view negation) const;
  absl::Status IsError(const Token& field) const;
  std::string UnquotedFieldHint(const Token& field) const;
  absl::Status ValueError(const Token& field, const Token& comparison) const;
  absl::Status NullError(const Token& field, const Token& comparison) const;
  absl::Status ChainError(const Token& field, const Token& comparison, const Token& value) const;
  absl::Status ColonError(const Token& value) const;
  absl::Status ListError(const Token& field, const Token& in) const;
  absl::Status ItemError(const Token& open) const;
  absl::Status CheckEnd(const Token* opened) const;
  std::string MissingJoinHint() const;

  const Token& Next(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& Advance() { return tokens_[at_++]; }
  // REQUIRES: one was taken.
  const Token& Last() const { return tokens_[at_ - 1]; }
  bool IsHasCall() const { return IsBare(Next(), "has") && Next(1).kind == Kind::kOpenParenthesis; }
  // REQUIRES: value was taken last.
  bool IsCutByColon(const Token& value) const {
    return value.kind == Kind::kWord && Next().kind == Kind::kComparison &&
           Next().comparison == Comparison::kContains && Touch(value, Next());
  }
  // Whether a field and an operator come next, as far as can be told.
  bool IsConditionAt(std::size_t ahead) const {
    const Kind behind = Next(ahead + 1).kind;
    return IsValue(Next(ahead)) && !IsBareNumber(Next(ahead)) &&
           (behind == Kind::kComparison || behind == Kind::kIn ||
            (behind == Kind::kNot && Next(ahead + 2).kind == Kind::kIn));
  }
  std::size_t OffsetOf(const Token& token) const {
    return token.kind == Kind::kBroken
               ? filter_.size()
               : static_cast<std::size_t>(token.written.data() - filter_.data());
  }
  // The filter from one token to another, both included.
  std::string_view Between(const Token& first, const Token& last) const {
    const std::size_t begin = OffsetOf(first);
    return filter_.substr(begin, OffsetOf(last) + last.written.size() - begin);
  }
  // From one word to another, with all that stands right behind them: 2024-01-31 12:00:00.
  std::string Run(const Token& first, const Token& last) const {
    const std::size_t end = filter_.find_first_of(" \t\r\n()[],\"'", OffsetOf(last));
    return Shown(filter_.substr(0, end).substr(OffsetOf(first)));
  }
  bool Touch(const Token& left, const Token& right) const {
    return right.kind != Kind::kBroken && OffsetOf(left) + left.written.size() == OffsetOf(right);
  }

  const std::string_view filter_;
  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  // Of the latest comparison, for those who write `year = 1990 OR 1991`.
  const Token* last_field_ = nullptr;
  const Token* last_comparison_ = nullptr;
};

}  // namespace simile::filter

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

// The class behind parser.h, for two files alone: parser.cpp, which reads, and parser_errors.cpp,
// which reports what is wrong.
namespace simile::filter {

using Kind = Token::Kind;

// A piece of the filter on one line of a message, cut at 40 characters.
std::string Excerpt(std::string_view written);
std::string Excerpt(const Token& token);

// A condition between AND, OR and parentheses.
struct Operand {
  Expression expression;
  std::string text;  // its excerpt
};

// REQUIRES: joins contains both AND and OR; columns[i] is that of joins[i].
absl::Status MixedError(const std::vector<Operand>& operands, const std::vector<Kind>& joins,
                        const std::vector<std::uint32_t>& columns);

// Reads one filter, token by token. Functions named Read advance; those named Error report what is
// wrong with the next token, and do not. Used once.
class Parser {
 public:
  explicit Parser(std::string_view filter) : filter_(filter), tokens_(Tokenize(filter)) {}

  // The whole filter.
  absl::StatusOr<Expression> Read() {
    if (Next().kind == Kind::kEnd) {
      return RefuseAt(1, "the filter is empty; leave it out to ask for every item");
    }
    return ReadJoined(nullptr);
  }

 private:
  // Operands joined by AND or by OR, up to the end or to the token that closes `opened`.
  absl::StatusOr<Expression> ReadJoined(const Token* opened);
  absl::StatusOr<Expression> ReadOperand();
  absl::StatusOr<Expression> ReadNested();
  absl::StatusOr<Expression> ReadHas();
  absl::StatusOr<Expression> ReadFolded();
  // The name and the parenthesis before a field, the field, and the parenthesis behind it.
  absl::StatusOr<const Token*> ReadFieldOfCall();
  absl::StatusOr<Expression> ReadCondition();
  // The operator behind a field, and its values.
  absl::StatusOr<Expression> ReadComparison(const Token& field);
  absl::StatusOr<Expression> ReadCompare(const Token& field);
  absl::StatusOr<Expression> ReadStar(const Token& field);
  absl::StatusOr<Expression> ReadIn(const Token& field);
  Literal ReadLiteral();

  // Errors at Next(), the first token that does not fit.
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
  // REQUIRES: a token was read.
  const Token& Last() const { return tokens_[at_ - 1]; }
  bool IsCall(std::string_view function) const {
    return IsBare(Next(), function) && Next(1).kind == Kind::kOpenParenthesis;
  }
  // Whether the bare value continues after a colon, as in 12:00. REQUIRES: value was read last.
  bool IsCutByColon(const Token& value) const {
    return value.kind == Kind::kWord && Next().kind == Kind::kComparison && Next().written == ":" &&
           Touch(value, Next());
  }
  // Whether a field and an operator seem to follow.
  bool IsConditionAt(std::size_t ahead) const {
    const Kind behind = Next(ahead + 1).kind;
    return IsValue(Next(ahead)) && !IsBareNumber(Next(ahead)) &&
           (behind == Kind::kComparison || behind == Kind::kIn ||
            (behind == Kind::kNot && Next(ahead + 2).kind == Kind::kIn));
  }
  std::size_t FindOffset(const Token& token) const {
    return token.kind == Kind::kBroken
               ? filter_.size()
               : static_cast<std::size_t>(token.written.data() - filter_.data());
  }
  // The filter from one token to another, both included.
  std::string_view Between(const Token& first, const Token& last) const {
    const std::size_t begin = FindOffset(first);
    return filter_.substr(begin, FindOffset(last) + last.written.size() - begin);
  }
  // The text from one word to another, and on to the next space: 2024-01-31 12:00:00.
  std::string Run(const Token& first, const Token& last) const {
    const std::size_t end = filter_.find_first_of(" \t\r\n()[],\"'", FindOffset(last));
    return Excerpt(filter_.substr(0, end).substr(FindOffset(first)));
  }
  bool Touch(const Token& left, const Token& right) const {
    return right.kind != Kind::kBroken &&
           FindOffset(left) + left.written.size() == FindOffset(right);
  }

  const std::string_view filter_;
  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  // The field of the latest comparison, for the error about `year = 1990 OR 1991`.
  const Token* last_field_ = nullptr;
  const Token* last_comparison_ = nullptr;
};

}  // namespace simile::filter

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <absl/functional/function_ref.h>

#include "data/field_type.h"
#include "filter/lexer.h"
#include "filter/ordered_column.h"

namespace simile::filter {

// Which keywords pass a comparison with a text.
enum class KeywordTest : std::uint8_t {
  kNone,    // keywords are not compared so
  kEqual,   // the text itself, byte for byte
  kFolded,  // those with the same folded text (FoldText)
  kPart,    // those whose folded text contains the folded text
};

// An operator of the language. The lexer, the parser, messages, the canonical text and evaluation
// read what they need of it here: a new comparison is a row in operators.cpp and, where no test
// fits, one such test.
struct Operator {
  std::string_view symbol;  // as messages and canonical text write it: a sign or an upper-case word
  Token::Kind kind = Token::Kind::kComparison;
  // What people write by mistake; errors answer with `symbol`. Words, in lower case, are recognized
  // between a field and a value.
  std::array<std::string_view, 6> wrong_signs{};
  std::array<std::string_view, 3> wrong_words{};
  bool spaced = true;  // year = 1990, but genres:War

  // The rest is for comparisons alone.
  bool negated = false;  // passes rows with the field that the tests below do not pass
  Sides sides{};         // the integers, numbers and times that pass; none: not for them
  KeywordTest keyword = KeywordTest::kNone;   // for fields of one keyword
  KeywordTest keywords = KeywordTest::kNone;  // for lists of keywords
  std::string_view asks{};        // its meaning, for the error about a field it is not for
  std::string_view empty_text{};  // why "" is refused for a keyword; empty: it is not

  bool word() const { return symbol.front() >= 'A' && symbol.front() <= 'Z'; }
  bool equality() const { return sides.equal && !sides.below && !sides.above; }
  // The elements of a list of integers, numbers or booleans that pass: `:` asks for an equal one.
  Sides element_sides() const {
    return keywords == KeywordTest::kFolded ? Sides{.equal = true} : sides;
  }
  bool order() const { return sides.below || sides.above; }
  bool IsFor(data::FieldType type) const;
};

// In the order in which messages list them.
std::span<const Operator> Operators();

// REQUIRES: an operator has this symbol.
const Operator& OperatorOf(std::string_view symbol);

// The comparison that means the same with its two sides exchanged.
const Operator& Flipped(const Operator& comparison);

// A comparison as a filter writes it.
std::string ComparisonText(std::string_view field, const Operator& comparison,
                           std::string_view value);

// The comparisons that `includes` accepts, and IN: "=, != or IN".
std::string ListComparisons(std::string_view conjunction,
                            absl::FunctionRef<bool(const Operator&)> includes);

}  // namespace simile::filter

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <absl/functional/function_ref.h>

#include "data/payload/field_type.h"
#include "filter/lexer.h"
#include "filter/ordered_column.h"

namespace simile::filter {

// Which keywords pass a comparison with a text.
enum class KeywordTest : std::uint8_t {
  kNone,    // keywords cannot be compared like this
  kEqual,   // the text itself, byte for byte
  kFolded,  // keywords with the same folded text (FoldText)
  kPart,    // keywords whose folded text contains the folded text
};

// An operator of the language. The lexer, the parser, messages, the canonical text and evaluation
// read it here. A new comparison is a row in operators.cpp and, if no KeywordTest fits, a new
// KeywordTest.
struct Operator {
  std::string_view symbol;  // as messages and canonical text write it: a sign or an upper-case word
  Token::Kind kind = Token::Kind::kComparison;
  // Spellings that people use by mistake; errors name `symbol` instead. Words are in lower case and
  // are recognized between a field and a value.
  std::array<std::string_view, 6> wrong_signs{};
  std::array<std::string_view, 3> wrong_words{};
  bool spaced = true;  // year = 1990, but genres:War

  // The rest is for comparisons alone.
  bool negated = false;  // passes the rows that have the field and do not pass the tests below
  Sides sides{};         // the integers, numbers and times that pass; none: not for these types
  KeywordTest keyword = KeywordTest::kNone;   // for fields of one keyword
  KeywordTest keywords = KeywordTest::kNone;  // for lists of keywords
  std::string_view asks{};        // its meaning, for the error when it does not suit a field
  std::string_view empty_text{};  // why "" is refused for a keyword; empty: "" is allowed

  bool word() const { return symbol.front() >= 'A' && symbol.front() <= 'Z'; }
  bool equality() const { return sides.equal && !sides.below && !sides.above; }
  // The elements of a list of integers, numbers or booleans that pass: for `:` the equal elements.
  Sides element_sides() const {
    return keywords == KeywordTest::kFolded ? Sides{.equal = true} : sides;
  }
  bool order() const { return sides.below || sides.above; }
  bool IsFor(data::FieldType type) const;
};

// In the order in which messages list them.
std::span<const Operator> Operators();

// REQUIRES: an operator has this symbol.
const Operator& FindOperator(std::string_view symbol);

// The comparison with the same meaning when its two sides are exchanged.
const Operator& Flipped(const Operator& comparison);

// A comparison as a filter writes it.
std::string ComparisonText(std::string_view field, const Operator& comparison,
                           std::string_view value);

// The comparisons that `includes` accepts, and IN: "=, != or IN".
std::string ListComparisons(std::string_view conjunction,
                            absl::FunctionRef<bool(const Operator&)> includes);

}  // namespace simile::filter

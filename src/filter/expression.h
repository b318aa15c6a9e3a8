#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simile::filter {

// A value as it was written. What it means depends on the type of the field it is held against.
struct Literal {
  std::string text;      // escapes resolved
  bool quoted = false;   // "1990" is text, 1990 is a number or a word
  std::uint32_t column;  // of its first character in the filter, from 1
};

enum class Comparison : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kContains,  // a list has the element, a text has the part
};

// How a comparison is written: "=", "!=", ":".
const char* SymbolOf(Comparison comparison);

// A parsed filter, fields and types not looked at yet. Which members count depends on the kind.
struct Expression {
  enum class Kind : std::uint8_t { kAnd, kOr, kNot, kCompare, kIn, kHas };

  Kind kind = Kind::kHas;
  std::uint32_t column = 1;          // of its first character in the filter, from 1
  std::vector<Expression> children;  // kAnd, kOr: two or more, none of the same kind; kNot: one
  std::string field;                 // kCompare, kIn, kHas
  Comparison comparison{};           // kCompare
  std::vector<Literal> literals;     // kCompare: one; kIn: one or more
};

// A field as a filter must write it: in quotes unless it is one bare word.
std::string FieldText(std::string_view field);

// The one way to write an expression: two filters that differ in spacing, letter case of AND, OR,
// NOT, IN and has, or needless parentheses alike have one text. Parsing it gives the expression
// back, columns aside.
std::string ToText(const Expression& expression);

}  // namespace simile::filter

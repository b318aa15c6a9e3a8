#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

namespace simile::filter {

// A value as it was written. Its meaning depends on the type of the field it is compared with.
struct Literal {
  std::string text;      // escapes resolved
  bool quoted = false;   // "1990" is text, 1990 is a number or a word
  std::uint32_t column;  // of its first character in the filter, from 1
};

struct Operator;

// A parsed filter, with fields and types unchecked. The kind decides which members are used.
struct Expression {
  enum class Kind : std::uint8_t { kAnd, kOr, kNot, kCompare, kIn, kHas };

  Kind kind = Kind::kHas;
  std::uint32_t column = 1;          // of its first character in the filter, from 1
  std::vector<Expression> children;  // kAnd, kOr: two or more, none of the same kind; kNot: one
  std::string field;                 // kCompare, kIn, kHas
  bool is_folded = false;            // kCompare, kIn: folded(field), compared as EqualFolded does
  const Operator* comparison = nullptr;  // kCompare
  std::vector<Literal> literals;         // kCompare: one; kIn: one or more
};

// A field as a filter must write it: in quotes unless it is one bare word.
std::string FieldText(std::string_view field);

// The canonical text of an expression. Filters have the same text when they differ only in spacing,
// needless parentheses, or the letter case of AND, OR, NOT, IN and has. Parsing the text gives the
// same expression, except for columns.
std::string ToText(const Expression& expression);

// INVALID_FILTER about a place in a filter: `column N: what`.
//   column  in characters, from 1
absl::Status RefuseAt(std::uint32_t column, std::string_view what);

}  // namespace simile::filter

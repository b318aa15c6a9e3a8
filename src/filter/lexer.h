#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "filter/expression.h"

namespace simile::filter {

// The smallest meaningful part of a filter. Borrows the filter's text.
struct Token {
  enum class Kind : std::uint8_t {
    kWord,    // a field or a bare value
    kString,  // in quotes
    kComparison,
    kAnd,
    kOr,
    kNot,
    kIn,
    kOpenParenthesis,
    kCloseParenthesis,
    kOpenBracket,
    kCloseBracket,
    kComma,
    kStar,
    kEnd,
    kBroken,  // no token of the language begins here
  };

  Kind kind = Kind::kEnd;
  Comparison comparison{};     // kComparison
  std::uint32_t column = 1;    // of its first character, from 1; kBroken: of what is wrong
  std::string_view written{};  // its bytes in the filter; empty for kBroken
  std::string text{};          // kWord, kString: escapes resolved; kBroken: what is wrong
};

// All tokens of a filter. The last, and only the last, is kEnd or kBroken: what stands behind a
// broken one is not looked at, so that errors come in the order of the text.
// Cost: O(size).
std::vector<Token> Tokenize(std::string_view filter);

// Whether text reads as one bare word: letters, digits, _ - . + and characters beyond ASCII other
// than typographic quotes, unusual spaces, invisible characters and the signs for !=, <= and >=.
// Keywords are bare words, too.
bool IsWord(std::string_view text);
// AND, OR, NOT and IN in any letter case: never a field or a value unless quoted.
bool IsKeyword(std::string_view text);
// Whether a word is a decimal number: -5, 7.5e0, .5.
bool IsNumber(std::string_view word);
// Whether text is this word in any letter case. REQUIRES: lower is ASCII in lower case.
bool IsSameWord(std::string_view text, std::string_view lower);

// What may stand on either side of an operator: a word or a string.
bool IsValue(const Token& token);
// Whether a token is this word without quotes, in any letter case. REQUIRES: as IsSameWord.
bool IsBare(const Token& token, std::string_view lower);
bool IsBareNumber(const Token& token);
// What is more likely meant as a value than as a field: quoted, or a bare word like 2024-01-31.
bool LooksLikeValue(const Token& token);

// Text in double quotes, with no more escapes than it needs. REQUIRES: valid UTF-8.
std::string WriteQuoted(std::string_view text);

}  // namespace simile::filter

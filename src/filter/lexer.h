#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simile::filter {

struct Operator;

// A word, a string or a sign of a filter. Borrows the filter's text.
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
  const Operator* op = nullptr;  // kComparison, kAnd, kOr, kNot, kIn
  std::uint32_t column = 1;      // of its first character, from 1; kBroken: of the error
  std::string_view written{};    // its bytes in the filter; empty for kBroken
  std::string text{};            // kWord, kString: escapes resolved; kBroken: what is wrong
};

// All tokens of a filter. The last token, and only the last, is kEnd or kBroken. The text after a
// broken token is not read, so that errors are reported in the order of the text.
// Cost: O(size).
std::vector<Token> Tokenize(std::string_view filter);

// Whether text is one bare word: letters, digits, _ - . + and characters beyond ASCII other than
// typographic quotes, unusual spaces, invisible characters and the signs for !=, <= and >=.
// Keywords are bare words.
bool IsWord(std::string_view text);
// Whether text is an operator that is a word, such as AND, in any letter case. Such a word is a
// field or a value only in quotes.
bool IsKeyword(std::string_view text);
// Whether a word is a decimal number: -5, 7.5e0, .5.
bool IsNumber(std::string_view word);

// Whether a token is a word or a string, which may be either side of an operator.
bool IsValue(const Token& token);
// Whether a token is this word without quotes, in any ASCII letter case.
bool IsBare(const Token& token, std::string_view word);
bool IsBareNumber(const Token& token);
// Whether a token is more likely a value than a field: quoted, or a bare word such as 2024-01-31.
bool LooksLikeValue(const Token& token);

// Text in double quotes, with no more escapes than it needs. REQUIRES: valid UTF-8.
std::string WriteQuoted(std::string_view text);

}  // namespace simile::filter

#include "filter/lexer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"
#include "filter/operators.h"

namespace simile::filter {
namespace {

using Kind = Token::Kind;

// A right or wrong way to write an operator.
struct Spelling {
  std::string_view written;
  const Operator* meant = nullptr;
};

// The longest sign that text begins with. `meant` is null when it begins with none.
Spelling FindSign(std::string_view text) {
  Spelling found;
  for (const Operator& each : Operators()) {
    const auto consider = [&](std::string_view sign) {
      if (sign.size() > found.written.size() && text.starts_with(sign)) found = {sign, &each};
    };
    if (!each.word()) consider(each.symbol);
    for (const std::string_view wrong : each.wrong_signs) consider(wrong);
  }
  return found;
}

// The operator that is this word; null for any other word.
const Operator* FindWord(std::string_view text) {
  const auto found = std::ranges::find_if(
      Operators(),
      [text](std::string_view symbol) { return base::EqualsIgnoringCase(text, symbol); },
      &Operator::symbol);
  return found == Operators().end() ? nullptr : &*found;
}

bool IsDigit(char byte) { return byte >= '0' && byte <= '9'; }
bool IsSpace(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

// Quotes that editors substitute for straight quotes, and the quotes of some languages.
bool IsTypographicQuote(std::uint32_t code) {
  return (code >= 0x2018 && code <= 0x201F) || code == 0x2039 || code == 0x203A || code == 0xAB ||
         code == 0xBB;
}

// The length of the first character of text when a bare word may contain it, else 0.
std::size_t WordCharacterLength(std::string_view text) {
  const std::size_t length = base::Utf8SequenceLength(text);
  if (length == 0) return 0;
  if (length == 1) {
    const char byte = text[0];
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    return letter || IsDigit(byte) || byte == '_' || byte == '-' || byte == '.' || byte == '+';
  }
  const std::string_view sequence = text.substr(0, length);
  const std::uint32_t code = base::DecodeUtf8(sequence);
  const bool special = base::IsControl(sequence) || IsTypographicQuote(code) ||
                       base::IsInvisible(code) || FindSign(sequence).meant != nullptr;
  return special ? 0 : length;
}

std::size_t WordLength(std::string_view text) {
  std::size_t at = 0;
  while (const std::size_t length = WordCharacterLength(text.substr(at))) at += length;
  return at;
}

std::string FormatEscape(std::uint32_t control) {
  if (control == '\n') return "\\n";
  if (control == '\t') return "\\t";
  return fmt::format("\\u{:04x}", control);
}

// Why no token may contain the first character of text.
std::string DescribeStray(std::string_view text) {
  const std::size_t length = base::Utf8SequenceLength(text);
  if (length == 0) {
    return fmt::format("byte 0x{:02x} begins no valid UTF-8 character",
                       static_cast<unsigned char>(text[0]));
  }
  const std::string_view sequence = text.substr(0, length);
  const std::uint32_t code = base::DecodeUtf8(sequence);
  if (base::IsControl(sequence)) {
    return fmt::format("the control character U+{:04X} is only written as {}, in quotes", code,
                       FormatEscape(code));
  }
  if (code == '`' || IsTypographicQuote(code)) {
    return fmt::format("{} is no quote here; write a straight one, \" or '", sequence);
  }
  if (base::IsInvisible(code)) {
    return fmt::format("an unusual space or invisible character, U+{:04X}; write a plain space",
                       code);
  }
  return fmt::format("{} has no meaning here; text that holds it needs quotes", sequence);
}

struct Escape {
  std::size_t bytes = 0;
  std::uint32_t code = 0;
  std::string wrong{};  // empty for a valid escape
};

// The code unit of the escape \uXXXX at the beginning of text.
std::optional<std::uint32_t> HexUnit(std::string_view text) {
  constexpr std::size_t kDigits = 4;
  if (!text.starts_with("\\u") || text.size() < 2 + kDigits) return std::nullopt;
  std::uint32_t unit = 0;
  for (const char digit : text.substr(2, kDigits)) {
    const char lower = static_cast<char>(digit | 0x20);
    if (!IsDigit(digit) && (lower < 'a' || lower > 'f')) return std::nullopt;
    const int value = IsDigit(digit) ? digit - '0' : lower - 'a' + 10;
    unit = unit << 4 | static_cast<std::uint32_t>(value);
  }
  return unit;
}

Escape ReadUnicodeEscape(std::string_view text) {
  const std::optional<std::uint32_t> first = HexUnit(text);
  if (!first) return {.wrong = "\\u needs four hexadecimal digits after it"};
  if (*first < 0xD800 || *first > 0xDFFF) return {.bytes = 6, .code = *first};
  const std::optional<std::uint32_t> second = HexUnit(text.substr(6));
  if (*first > 0xDBFF || !second || *second < 0xDC00 || *second > 0xDFFF) {
    return {.wrong = fmt::format("\\u{:04x} is half of a surrogate pair; the other half is missing",
                                 *first)};
  }
  return {.bytes = 12, .code = 0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00)};
}

// REQUIRES: text begins with a backslash and another character.
Escape ReadEscape(std::string_view text) {
  switch (text[1]) {
    case '"':
    case '\'':
    case '\\':
      return {.bytes = 2, .code = static_cast<std::uint32_t>(text[1])};
    case 'n':
      return {.bytes = 2, .code = '\n'};
    case 't':
      return {.bytes = 2, .code = '\t'};
    case 'u':
      return ReadUnicodeEscape(text);
    default:
      break;
  }
  const std::string_view next = text.substr(1, base::Utf8SequenceLength(text.substr(1)));
  const bool printable = !next.empty() && !base::IsControl(next);
  return {.wrong = fmt::format("\\{} is no escape; those are \\\" \\' \\\\ \\n \\t and \\uXXXX, "
                               "and a backslash in the text is written \\\\",
                               printable ? next : std::string_view())};
}

class Lexer {
 public:
  explicit Lexer(std::string_view filter) : filter_(filter) {}

  Token Next() {
    while (at_ < filter_.size() && IsSpace(filter_[at_])) Advance(1);
    if (at_ == filter_.size()) return Read(Kind::kEnd, 0);
    switch (filter_[at_]) {
      case '(':
        return Read(Kind::kOpenParenthesis, 1);
      case ')':
        return Read(Kind::kCloseParenthesis, 1);
      case '[':
        return Read(Kind::kOpenBracket, 1);
      case ']':
        return Read(Kind::kCloseBracket, 1);
      case ',':
        return Read(Kind::kComma, 1);
      case '*':
        return Read(Kind::kStar, 1);
      case '"':
      case '\'':
        return ReadString();
      default:
        break;
    }
    if (const Spelling sign = FindSign(rest()); sign.meant != nullptr) return ReadSign(sign);
    const std::size_t length = WordLength(rest());
    return length == 0 ? Broken(column_, DescribeStray(rest())) : ReadWord(length);
  }

 private:
  std::string_view rest() const { return filter_.substr(at_); }

  void Advance(std::size_t bytes) {
    for (const char byte : filter_.substr(at_, bytes)) {
      if ((static_cast<unsigned char>(byte) & 0xC0U) != 0x80U) ++column_;
    }
    at_ += bytes;
  }

  Token Read(Kind kind, std::size_t bytes) {
    Token token{.kind = kind, .column = column_, .written = filter_.substr(at_, bytes)};
    Advance(bytes);
    return token;
  }

  static Token Broken(std::uint32_t column, std::string what) {
    return {.kind = Kind::kBroken, .column = column, .text = std::move(what)};
  }

  Token ReadSign(const Spelling& sign) {
    const auto& [written, meant] = sign;
    if (written != meant->symbol) {
      return Broken(column_,
                    fmt::format("{} is no operator here; write {}", written, meant->symbol));
    }
    return ReadOperator(*meant, written.size());
  }

  Token ReadOperator(const Operator& meant, std::size_t bytes) {
    Token token = Read(meant.kind, bytes);
    token.op = &meant;
    return token;
  }

  Token ReadWord(std::size_t length) {
    if (const Operator* const meant = FindWord(rest().substr(0, length))) {
      return ReadOperator(*meant, length);
    }
    Token token = Read(Kind::kWord, length);
    token.text = token.written;
    return token;
  }

  Token ReadString() {
    const std::size_t begin = at_;
    Token token = Read(Kind::kString, 1);
    const char quote = filter_[begin];
    // A backslash at the end of the filter is reported as a string that is never closed.
    while (at_ < filter_.size() && rest() != "\\") {
      if (filter_[at_] == quote) {
        Advance(1);
        token.written = filter_.substr(begin, at_ - begin);
        return token;
      }
      if (filter_[at_] == '\\') {
        const Escape escape = ReadEscape(rest());
        if (!escape.wrong.empty()) return Broken(column_, escape.wrong);
        base::AppendUtf8(token.text, escape.code);
        Advance(escape.bytes);
        continue;
      }
      const std::string_view character = rest().substr(0, base::Utf8SequenceLength(rest()));
      if (character.empty() || base::IsControl(character)) {
        return Broken(column_, DescribeStray(rest()));
      }
      token.text += character;
      Advance(character.size());
    }
    return Unclosed(begin, token.column);
  }

  Token Unclosed(std::size_t begin, std::uint32_t column) const {
    const bool inside_word =
        filter_[begin] == '\'' && begin > 0 && WordCharacterLength(filter_.substr(begin - 1)) == 1;
    return Broken(column,
                  fmt::format("this {} is never closed{}", filter_[begin],
                              inside_word ? "; text with a ' in it goes in double quotes" : ""));
  }

  const std::string_view filter_;
  std::size_t at_ = 0;
  std::uint32_t column_ = 1;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view filter) {
  Lexer lexer(filter);
  std::vector<Token> tokens;
  do {
    tokens.push_back(lexer.Next());
  } while (tokens.back().kind != Kind::kEnd && tokens.back().kind != Kind::kBroken);
  return tokens;
}

bool IsWord(std::string_view text) { return !text.empty() && WordLength(text) == text.size(); }

bool IsKeyword(std::string_view text) { return FindWord(text) != nullptr; }

bool IsNumber(std::string_view word) {
  const auto skip_any = [&word](std::string_view bytes) {
    const bool found = !word.empty() && bytes.find(word[0]) != std::string_view::npos;
    if (found) word.remove_prefix(1);
    return found;
  };
  const auto skip_digits = [&word] {
    const std::size_t count = std::min(word.find_first_not_of("0123456789"), word.size());
    word.remove_prefix(count);
    return count;
  };
  skip_any("+-");
  std::size_t digits = skip_digits();
  if (skip_any(".")) digits += skip_digits();
  if (digits == 0) return false;
  if (skip_any("eE")) {
    skip_any("+-");
    if (skip_digits() == 0) return false;
  }
  return word.empty();
}

bool IsValue(const Token& token) {
  return token.kind == Kind::kWord || token.kind == Kind::kString;
}

bool IsBare(const Token& token, std::string_view word) {
  return token.kind == Kind::kWord && base::EqualsIgnoringCase(token.text, word);
}

bool IsBareNumber(const Token& token) { return token.kind == Kind::kWord && IsNumber(token.text); }

bool LooksLikeValue(const Token& token) {
  if (token.kind != Kind::kWord) return token.kind == Kind::kString;
  const std::size_t first = token.text.find_first_not_of("+-.");
  return first != std::string::npos && IsDigit(token.text[first]);
}

std::string WriteQuoted(std::string_view text) {
  std::string written = "\"";
  while (!text.empty()) {
    const std::string_view character =
        text.substr(0, std::max<std::size_t>(base::Utf8SequenceLength(text), 1));
    if (base::IsControl(character)) {
      written += FormatEscape(base::DecodeUtf8(character));
    } else {
      if (character == "\"" || character == "\\") written += '\\';
      written += character;
    }
    text.remove_prefix(character.size());
  }
  written += '"';
  return written;
}

}  // namespace simile::filter

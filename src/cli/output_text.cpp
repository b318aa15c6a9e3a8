#include "cli/output_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace simile::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";     // U+2026

// The first character of a text and its length. An invalid byte has code -1 and length 1.
struct Character {
  utf8proc_int32_t code = -1;
  std::size_t bytes = 1;
};

Character ReadCharacter(std::string_view text) {
  Character character;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()), &character.code);
  if (bytes > 0) character.bytes = static_cast<std::size_t>(bytes);
  return character;
}

bool IsHarmless(utf8proc_int32_t code, LineBreaks line_breaks) {
  if (code < 0) return false;
  if (code == '\n') return line_breaks == LineBreaks::kKept;
  const bool overrides_direction =
      (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return !overrides_direction && utf8proc_category(code) != UTF8PROC_CATEGORY_CC;
}

std::size_t CharacterWidth(utf8proc_int32_t code) {
  return code < 0 ? 1 : static_cast<std::size_t>(std::max(0, utf8proc_charwidth(code)));
}

}  // namespace

std::string Printable(std::string_view text, LineBreaks line_breaks) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const Character character = ReadCharacter(text);
    printable +=
        IsHarmless(character.code, line_breaks) ? text.substr(0, character.bytes) : kReplacement;
    text.remove_prefix(character.bytes);
  }
  return printable;
}

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character character = ReadCharacter(text);
    width += CharacterWidth(character.code);
    text.remove_prefix(character.bytes);
  }
  return width;
}

std::string_view CutToWidth(std::string_view text, std::size_t width) {
  std::size_t taken_bytes = 0;
  std::size_t taken_width = 0;
  while (taken_bytes < text.size()) {
    const Character character = ReadCharacter(text.substr(taken_bytes));
    if (taken_width + CharacterWidth(character.code) > width) break;
    taken_width += CharacterWidth(character.code);
    taken_bytes += character.bytes;
  }
  return text.substr(0, taken_bytes);
}

std::string Shortened(std::string_view text, std::size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::string shortened(CutToWidth(text, width - 1));
  while (shortened.ends_with(' ')) shortened.pop_back();
  return shortened += kEllipsis;
}

std::vector<std::string> Wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool fits =
        !lines.empty() && DisplayWidth(lines.back()) + 1 + DisplayWidth(word) <= width;
    if (fits) {
      lines.back() += fmt::format(" {}", word);
    } else {
      lines.push_back(word);
    }
  }
  return lines.empty() ? std::vector<std::string>{""} : lines;
}

std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,/:=+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  // Prefers double quotes if they need no escapes, because titles contain apostrophes.
  if (text.find_first_of("\"\\$`!") == std::string::npos) return fmt::format("\"{}\"", text);
  std::string word = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      word += "'\\''";
    } else {
      word += letter;
    }
  }
  return word += '\'';
}

std::string JsonLine(const nlohmann::ordered_json& value) {
  constexpr int kNoIndent = -1;
  constexpr bool kEscapeNonAscii = false;
  return value.dump(kNoIndent, ' ', kEscapeNonAscii,
                    nlohmann::ordered_json::error_handler_t::replace) +
         '\n';
}

nlohmann::ordered_json FloatJson(float number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  double shortest = number;
  std::from_chars(digits.data(), end, shortest);
  return shortest;
}

}  // namespace simile::cli

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace simile::cli {

// Makes text from files and servers safe to print on a terminal.

enum class LineBreaks : std::uint8_t { kKept, kReplaced };

// The text with every control character, direction override and invalid byte replaced by U+FFFD. So
// a title cannot move the cursor, recolour the screen or reverse the text after it.
std::string Printable(std::string_view text, LineBreaks line_breaks = LineBreaks::kReplaced);

// Terminal columns the text takes: 2 for wide characters (CJK, most emoji), 0 for combining marks.
std::size_t DisplayWidth(std::string_view text);

// The longest beginning of the text that is at most `width` columns wide. Never separates a
// character from its combining marks.
std::string_view CutToWidth(std::string_view text, std::size_t width);

// The text if it is at most `width` columns wide. Otherwise a beginning of the text and an
// ellipsis, together at most `width` columns wide.
std::string Shortened(std::string_view text, std::size_t width);

// Breaks a text at spaces into lines of at most `width` columns. A longer word gets its own line.
std::vector<std::string> Wrapped(const std::string& text, std::size_t width);

// The text as one word of a shell command line, quoted if necessary.
std::string ShellWord(const std::string& text);

// The value on one line, ended by '\n'. Replaces invalid UTF-8 by U+FFFD, because file names and
// arguments may be any bytes but JSON may not.
std::string JsonLine(const nlohmann::ordered_json& value);

// A float as a JSON number of the fewest digits. JSON numbers are doubles, and a float needs fewer
// digits than the double it widens to: 0.7029, not 0.7028999924659729. Both read back as the same
// float.
nlohmann::ordered_json FloatJson(float number);

}  // namespace simile::cli

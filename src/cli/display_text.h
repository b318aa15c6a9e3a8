#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace simile::cli {

// Makes text from files and servers safe to print on a terminal.

enum class LineBreaks : std::uint8_t { kKept, kReplaced };

// The text with every control character, direction override and invalid byte replaced by U+FFFD, so
// that a title cannot move the cursor, recolour the screen or reverse what follows.
std::string Printable(std::string_view text, LineBreaks line_breaks = LineBreaks::kReplaced);

// Terminal columns the text takes: 2 for wide characters (CJK, most emoji), 0 for combining marks.
std::size_t DisplayWidth(std::string_view text);

// The longest beginning of the text that is at most `width` columns wide. Never separates a
// character from its combining marks.
std::string_view BeginningOf(std::string_view text, std::size_t width);

// The text if it is at most `width` columns wide, else its beginning and an ellipsis that together
// are.
std::string Shortened(std::string_view text, std::size_t width);

// The text as one word of a shell's command line, in quotes where that is necessary.
std::string ShellWord(const std::string& text);

}  // namespace simile::cli

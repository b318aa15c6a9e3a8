#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace simile::cli {

// Text from files and servers, made fit for a terminal.

enum class LineBreaks : std::uint8_t { kKept, kReplaced };

// The text with every control character, direction override and invalid byte replaced by U+FFFD, so
// that a title cannot move the cursor, recolour the screen or reverse what follows.
std::string Printable(std::string_view text, LineBreaks line_breaks = LineBreaks::kReplaced);

// Terminal columns the text takes: 2 for wide characters (CJK, most emoji), 0 for combining marks.
std::size_t DisplayWidth(std::string_view text);

// The text itself when it fits, else as much of it as leaves room for an ellipsis; never cuts a
// character from its combining marks. At most `width` columns wide.
std::string Shortened(std::string_view text, std::size_t width);

}  // namespace simile::cli

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace simile::cli {

// The abilities of an output stream. Only a terminal gets colour and shortened lines; a file or a
// pipe gets the whole text without escape sequences.
struct Terminal {
  bool is_terminal = false;
  bool colour = false;    // true for a terminal if neither NO_COLOR nor TERM=dumb is set
  std::size_t width = 0;  // columns; 0: no bound
};

Terminal StandardOutput();
Terminal StandardError();

// The text in bold or faint letters if the terminal has colour, otherwise unchanged.
std::string Bold(std::string_view text, const Terminal& terminal);
std::string Dim(std::string_view text, const Terminal& terminal);

}  // namespace simile::cli

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace simile::cli {

enum class Align : std::uint8_t { kLeft, kRight };

// Rows of text in aligned columns, two spaces apart. Makes cells printable. Widths are in terminal
// columns, not bytes. On a terminal shortens the widest column that may shrink until the table
// fits, and columns of ids only if no other column can shrink. Cuts and wraps nothing in a file or
// a pipe.
class Table {
 public:
  struct Column {
    std::string heading;  // if no column has a heading, the table has no heading line
    Align align = Align::kLeft;
    bool may_shrink = false;
    bool shrinks_last = false;  // for ids, because the next command needs them whole
    bool wraps = false;         // a shrunk cell continues on the next line instead of being cut
  };
  explicit Table(std::vector<Column> columns);

  // REQUIRES: one cell per column.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // One line per row, ended by '\n', with `indent` leading spaces and no trailing spaces.
  std::string Render(const Terminal& terminal, std::size_t indent) const;

 private:
  std::vector<std::size_t> Widths(const Terminal& terminal, std::size_t indent) const;
  // The widest column that may still be shortened; the last of equally wide ones.
  //   last  choose among the columns marked shrinks_last; otherwise among the unmarked columns
  std::optional<std::size_t> WidestThatShrinks(const std::vector<std::size_t>& widths,
                                               bool last) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace simile::cli

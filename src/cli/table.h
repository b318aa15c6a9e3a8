#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace simile::cli {

enum class Align : std::uint8_t { kLeft, kRight };

// Rows of text in aligned columns, two spaces apart. Cells are made printable; widths are in
// terminal columns, not bytes. On a terminal the widest column that may shrink is shortened until
// the table fits, columns of ids only when no other is left; in a file or a pipe nothing is cut or
// wrapped.
class Table {
 public:
  struct Column {
    std::string heading;  // without any the table has no heading line
    Align align = Align::kLeft;
    bool may_shrink = false;
    bool shrinks_last = false;  // ids: the next command needs them whole
    bool wraps = false;         // a shrunk cell goes on in the next line instead of being cut
  };
  explicit Table(std::vector<Column> columns);

  // REQUIRES: as many cells as columns.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // One line per row, ended by '\n', with `indent` spaces at its start and none at its end.
  std::string Render(const Terminal& terminal, std::size_t indent) const;

 private:
  std::vector<std::size_t> Widths(const Terminal& terminal, std::size_t indent) const;
  // The widest column that may still be shortened, of equal ones the last.
  //   last  of those that shrink last, else of the others
  std::optional<std::size_t> WidestThatShrinks(const std::vector<std::size_t>& widths,
                                               bool last) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace simile::cli

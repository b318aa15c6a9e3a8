#include "cli/table.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "cli/output_text.h"

namespace simile::cli {
namespace {

constexpr std::size_t kGap = 2;
// The least width of a shortened column; a narrower one would show nothing useful.
constexpr std::size_t kShrunkWidthMin = 8;

std::string Padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t taken = DisplayWidth(text);
  const std::string padding(width > taken ? width - taken : 0, ' ');
  return align == Align::kRight ? padding + text : text + padding;
}

// Breaks the text into lines of at most `width` columns, at spaces, and inside words that are
// longer than a line.
std::vector<std::string> BreakIntoLines(const std::string& text, std::size_t width) {
  if (DisplayWidth(text) <= width) return {text};
  std::vector<std::string> lines;
  for (std::string word : Wrapped(text, width)) {
    for (; DisplayWidth(word) > width; word.erase(0, lines.back().size())) {
      lines.emplace_back(CutToWidth(word, width));
    }
    lines.push_back(std::move(word));
  }
  return lines;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::Widths(const Terminal& terminal, std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = DisplayWidth(columns_[i].heading);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i]));
    widths.push_back(width);
  }
  if (terminal.width == 0) return widths;
  std::size_t total = std::accumulate(widths.begin(), widths.end(), indent) +
                      kGap * (columns_.empty() ? 0 : columns_.size() - 1);
  for (const bool last : {false, true}) {
    while (total > terminal.width) {
      const std::optional<std::size_t> widest = WidestThatShrinks(widths, last);
      if (!widest) break;
      --widths[*widest];
      --total;
    }
  }
  return widths;
}

std::optional<std::size_t> Table::WidestThatShrinks(const std::vector<std::size_t>& widths,
                                                    bool last) const {
  std::optional<std::size_t> widest;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].may_shrink || columns_[i].shrinks_last != last) continue;
    if (widths[i] > kShrunkWidthMin && (!widest || widths[i] >= widths[*widest])) widest = i;
  }
  return widest;
}

std::string Table::Render(const Terminal& terminal, std::size_t indent) const {
  const std::vector<std::size_t> widths = Widths(terminal, indent);
  const auto line = [&](const auto& cell_of) {
    std::string text(indent, ' ');
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) text.append(kGap, ' ');
      text += Padded(cell_of(i), widths[i], columns_[i].align);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string rendered;
  const bool has_heading =
      std::ranges::any_of(columns_, [](const Column& column) { return !column.heading.empty(); });
  if (has_heading) {
    rendered += Bold(line([&](std::size_t i) { return Shortened(columns_[i].heading, widths[i]); }),
                     terminal) +
                '\n';
  }
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      cells.push_back(columns_[i].wraps ? BreakIntoLines(row[i], widths[i])
                                        : std::vector{Shortened(row[i], widths[i])});
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t n = 0; n < lines; ++n) {
      rendered +=
          line([&](std::size_t i) { return n < cells[i].size() ? cells[i][n] : ""; }) + '\n';
    }
  }
  return rendered;
}

}  // namespace simile::cli

#include "filter/keyword_column.h"

#include <algorithm>
#include <utility>

#include "filter/text_index.h"

namespace simile::filter {
namespace {

// From so many rows on a keyword has a bitmap.
constexpr std::size_t kBitmapRowsMin = 64;

}  // namespace

std::string_view KeywordColumn::Folded(std::size_t keyword) const {
  const std::uint64_t begin = keyword == 0 ? 0 : entries_[keyword - 1].spelling_end;
  return {texts_.data() + begin, entries_[keyword].folded_end - begin};
}

std::string_view KeywordColumn::Spelling(std::size_t keyword) const {
  const Entry& entry = entries_[keyword];
  return {texts_.data() + entry.folded_end, entry.spelling_end - entry.folded_end};
}

void KeywordColumn::AddRows(const Entry& entry, RowMask& mask) const {
  if (entry.row_count >= kBitmapRowsMin) return bitmaps_[entry.place].AddTo(mask);
  for (const Row row : std::span(rows_).subspan(entry.place, entry.row_count)) mask.Allow(row);
}

void KeywordColumn::AddRowsWith(std::string_view text, RowMask& mask) const {
  const std::string wanted = FoldText(text);
  std::size_t first = 0;
  std::size_t last = entries_.size();
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (Folded(middle) < wanted) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  if (first < entries_.size() && Folded(first) == wanted) AddRows(entries_[first], mask);
}

void KeywordColumn::AddRowsWithPart(std::string_view text, RowMask& mask) const {
  const std::string part = FoldText(text);
  for (std::size_t keyword = 0; keyword < entries_.size(); ++keyword) {
    if (Folded(keyword).find(part) != std::string_view::npos) AddRows(entries_[keyword], mask);
  }
}

std::uint64_t KeywordColumn::bytes() const {
  std::uint64_t bytes = texts_.capacity() + entries_.capacity() * sizeof(Entry) +
                        rows_.capacity() * sizeof(Row) + bitmaps_.capacity() * sizeof(RowSet);
  for (const RowSet& bitmap : bitmaps_) bytes += bitmap.bytes();
  return bytes;
}

void KeywordColumn::Builder::Add(Row row, std::string_view text) {
  const auto [found, added] = keywords_.try_emplace(FoldText(text));
  Keyword& keyword = found->second;
  if (added) keyword.spelling = std::string(text);
  if (keyword.rows.empty() || keyword.rows.back() != row) keyword.rows.push_back(row);
}

KeywordColumn KeywordColumn::Builder::Build() && {
  std::vector<std::pair<std::string_view, const Keyword*>> sorted;
  sorted.reserve(keywords_.size());
  std::size_t text_bytes = 0;
  for (const auto& [folded, keyword] : keywords_) {
    sorted.emplace_back(folded, &keyword);
    text_bytes += folded.size() + keyword.spelling.size();
  }
  std::ranges::sort(sorted);

  KeywordColumn column;
  column.texts_.reserve(text_bytes);
  column.entries_.reserve(sorted.size());
  for (const auto& [folded, keyword] : sorted) {
    Entry entry;
    column.texts_.insert(column.texts_.end(), folded.begin(), folded.end());
    entry.folded_end = column.texts_.size();
    column.texts_.insert(column.texts_.end(), keyword->spelling.begin(), keyword->spelling.end());
    entry.spelling_end = column.texts_.size();
    entry.row_count = keyword->rows.size();
    if (keyword->rows.size() >= kBitmapRowsMin) {
      entry.place = column.bitmaps_.size();
      column.bitmaps_.emplace_back(keyword->rows);
    } else {
      entry.place = column.rows_.size();
      column.rows_.insert(column.rows_.end(), keyword->rows.begin(), keyword->rows.end());
    }
    column.entries_.push_back(entry);
  }
  column.rows_.shrink_to_fit();
  column.bitmaps_.shrink_to_fit();
  return column;
}

}  // namespace simile::filter

#include "filter/keyword_column.h"

#include <algorithm>
#include <span>
#include <utility>

#include "filter/text_index.h"

namespace simile::filter {
namespace {

// A keyword of this many rows or more has a bitmap.
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

std::uint64_t KeywordColumn::AddRowsOf(std::size_t keyword, RowMask& mask) const {
  const Entry& entry = entries_[keyword];
  if (entry.row_count >= kBitmapRowsMin) return bitmaps_[entry.place].AddTo(mask);
  for (const Row row : std::span(rows_).subspan(entry.place, entry.row_count)) mask.Allow(row);
  return entry.row_count;
}

std::optional<Row> KeywordColumn::FirstRowOf(std::size_t keyword, const RowMask& mask) const {
  const Entry& entry = entries_[keyword];
  if (entry.row_count >= kBitmapRowsMin) return bitmaps_[entry.place].FirstAllowed(mask);
  for (const Row row : std::span(rows_).subspan(entry.place, entry.row_count)) {
    if (mask.Allows(row)) return row;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> KeywordColumn::Find(std::string_view text) const {
  const std::string wanted = FoldText(text);
  const auto place = [this](const Entry& entry) {
    return static_cast<std::uint32_t>(&entry - entries_.data());
  };
  const auto folded = [&](const Entry& entry) { return Folded(place(entry)); };
  const auto found = std::ranges::lower_bound(entries_, std::string_view(wanted), {}, folded);
  if (found == entries_.end() || folded(*found) != wanted) return std::nullopt;
  return place(*found);
}

std::uint64_t KeywordColumn::AddRowsWith(std::string_view text, RowMask& mask) const {
  const std::optional<std::uint32_t> keyword = Find(text);
  return keyword ? AddRowsOf(*keyword, mask) : 1;
}

std::uint64_t KeywordColumn::AddRowsWithPart(std::string_view text, RowMask& mask) const {
  const std::string part = FoldText(text);
  std::uint64_t work = entries_.size();
  for (std::size_t keyword = 0; keyword < entries_.size(); ++keyword) {
    if (Folded(keyword).find(part) == std::string_view::npos) continue;
    work += AddRowsOf(keyword, mask);
  }
  return work;
}

std::uint64_t KeywordColumn::bytes() const {
  std::uint64_t bytes = texts_.capacity() + entries_.capacity() * sizeof(Entry) +
                        rows_.capacity() * sizeof(Row) + bitmaps_.capacity() * sizeof(RowSet);
  for (const RowSet& bitmap : bitmaps_) bytes += bitmap.bytes();
  return bytes;
}

void KeywordColumn::Builder::Add(Row row, std::string_view text) {
  const auto next = static_cast<std::uint32_t>(numbers_.size());
  const auto [found, added] = numbers_.try_emplace(FoldText(text), next);
  if (added) {
    spellings_.insert(spellings_.end(), text.begin(), text.end());
    spelling_ends_.push_back(spellings_.size());
  }
  occurrences_.push_back({found->second, row});
}

KeywordColumn KeywordColumn::Builder::Build(std::size_t row_count) && {
  // By keyword, then by row, because the sort is stable. Repeats within a row become adjacent.
  std::ranges::stable_sort(occurrences_, {}, &Occurrence::keyword);
  const auto same = [](const Occurrence& a, const Occurrence& b) {
    return a.keyword == b.keyword && a.row == b.row;
  };
  occurrences_.erase(std::unique(occurrences_.begin(), occurrences_.end(), same),
                     occurrences_.end());
  std::vector<std::uint64_t> ends(numbers_.size());
  for (std::size_t i = 0; i < occurrences_.size(); ++i) ends[occurrences_[i].keyword] = i + 1;

  std::vector<std::pair<std::string_view, std::uint32_t>> sorted(numbers_.begin(), numbers_.end());
  std::ranges::sort(sorted);
  KeywordColumn column;
  column.entries_.reserve(sorted.size());
  std::vector<Row> rows;
  for (const auto& [folded, keyword] : sorted) {
    const auto spelling_begin =
        spellings_.begin() +
        static_cast<std::ptrdiff_t>(keyword == 0 ? 0 : spelling_ends_[keyword - 1]);
    const auto spelling_end =
        spellings_.begin() + static_cast<std::ptrdiff_t>(spelling_ends_[keyword]);
    Entry entry;
    column.texts_.insert(column.texts_.end(), folded.begin(), folded.end());
    entry.folded_end = column.texts_.size();
    column.texts_.insert(column.texts_.end(), spelling_begin, spelling_end);
    entry.spelling_end = column.texts_.size();

    rows.clear();
    for (std::uint64_t i = keyword == 0 ? 0 : ends[keyword - 1]; i < ends[keyword]; ++i)
      rows.push_back(occurrences_[i].row);
    entry.row_count = rows.size();
    if (rows.size() >= kBitmapRowsMin) {
      entry.place = column.bitmaps_.size();
      column.bitmaps_.emplace_back(rows, row_count);
    } else {
      entry.place = column.rows_.size();
      column.rows_.insert(column.rows_.end(), rows.begin(), rows.end());
    }
    column.entries_.push_back(entry);
  }
  column.texts_.shrink_to_fit();
  column.rows_.shrink_to_fit();
  column.bitmaps_.shrink_to_fit();
  return column;
}

}  // namespace simile::filter

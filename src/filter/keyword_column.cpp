#include "filter/keyword_column.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "data/load/dataset_sample.h"
#include "data/payload/text_slots.h"
#include "filter/text_index.h"

namespace simile::filter {
namespace {

// A keyword of this many rows or more has a bitmap.
constexpr std::size_t kBitmapRowsMin = 64;

// The average bytes of a keyword's rows in a column.
double RowBytes(double rows, std::size_t row_count) {
  if (rows < kBitmapRowsMin) return rows * sizeof(Row);
  return static_cast<double>(sizeof(RowSet) +
                             RowSet::BytesFor(static_cast<std::uint64_t>(rows), row_count));
}

// The bytes of a block of Builder::kept_; a longer text has its own block.
constexpr std::size_t kKeptBytes = std::size_t{64} << 10;

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

std::string_view KeywordColumn::Folded(std::size_t keyword) const {
  const std::uint64_t begin = keyword == 0 ? 0 : entries_[keyword - 1].text_end;
  return {texts_.data() + begin, entries_[keyword].folded_end - begin};
}

std::string_view KeywordColumn::Text(std::size_t keyword) const {
  const Entry& entry = entries_[keyword];
  return {texts_.data() + entry.folded_end, entry.text_end - entry.folded_end};
}

void KeywordColumn::AddRows(std::size_t keyword, RowMask& mask) const {
  const Entry& entry = entries_[keyword];
  if (entry.row_count >= kBitmapRowsMin) return bitmaps_[entry.place].AddTo(mask);
  for (const Row row : std::span(rows_).subspan(entry.place, entry.row_count)) mask.Allow(row);
}

std::uint64_t KeywordColumn::LooksFor(std::size_t keyword) const {
  const Entry& entry = entries_[keyword];
  return entry.row_count >= kBitmapRowsMin ? bitmaps_[entry.place].looks() : entry.row_count;
}

std::optional<std::uint32_t> KeywordColumn::Find(std::string_view text) const {
  const Range alike = FindFolded(FoldText(text));
  for (std::size_t begin = alike.begin, end = alike.end; begin < end;) {
    const std::size_t middle = begin + (end - begin) / 2;
    const int order = Text(middle).compare(text);
    if (order == 0) return static_cast<std::uint32_t>(middle);
    (order < 0 ? begin : end) = order < 0 ? middle + 1 : middle;
  }
  return std::nullopt;
}

KeywordColumn::Range KeywordColumn::FindFolded(std::string_view folded) const {
  const auto folded_of = [this](const Entry& entry) {
    return Folded(static_cast<std::size_t>(&entry - entries_.data()));
  };
  const auto begin = std::ranges::lower_bound(entries_, folded, {}, folded_of);
  const auto end = std::ranges::upper_bound(entries_, folded, {}, folded_of);
  return {static_cast<std::size_t>(begin - entries_.begin()),
          static_cast<std::size_t>(end - entries_.begin())};
}

bool KeywordColumn::Contains(std::size_t keyword, std::string_view folded) const {
  return Folded(keyword).find(folded) != std::string_view::npos;
}

std::uint64_t KeywordColumn::bytes() const {
  std::uint64_t bytes = texts_.capacity() + entries_.capacity() * sizeof(Entry) +
                        rows_.capacity() * sizeof(Row) + bitmaps_.capacity() * sizeof(RowSet);
  for (const RowSet& bitmap : bitmaps_) bytes += bitmap.bytes();
  return bytes;
}

bool KeywordColumn::IsBefore(const Entry& entry, std::size_t row) const {
  return entry.row_count >= kBitmapRowsMin || rows_[entry.place] < row;
}

KeywordColumn::Estimate KeywordColumn::EstimateFor(std::size_t sampled_rows,
                                                   std::size_t row_count) const {
  if (entries_.empty()) return {};
  const double times = static_cast<double>(row_count) / static_cast<double>(sampled_rows);
  // The frequency of a keyword that the sample has less often is not known.
  constexpr std::uint64_t kKnownRowsMin = 4;
  data::DistinctSample sample;
  sample.distinct = entries_.size();
  double known = 0;       // keywords whose frequency is known
  double row_bytes = 0;   // of their rows
  double other_rows = 0;  // rows of the other keywords
  for (std::size_t keyword = 0; keyword < entries_.size(); ++keyword) {
    const Entry& entry = entries_[keyword];
    sample.values += entry.row_count;
    if (entry.row_count == 1) ++sample.once;
    if (entry.row_count == 2) ++sample.twice;
    if (IsBefore(entry, sampled_rows / 2)) ++sample.distinct_in_half;
    const double rows = times * static_cast<double>(entry.row_count);
    if (entry.row_count < kKnownRowsMin) {
      other_rows += rows;
    } else {
      known += 1;
      row_bytes += RowBytes(rows, row_count);
    }
  }
  const double distinct = std::max(data::DistinctCount(sample, times), 1.0);
  const double others = std::max(distinct - known, 1.0);
  row_bytes += others * RowBytes(other_rows / others, row_count);
  const double of_sample = distinct / static_cast<double>(entries_.size());
  const double texts = of_sample * static_cast<double>(texts_.size());
  const double occurrences = times * static_cast<double>(sample.values);
  Estimate estimate;
  estimate.bytes = static_cast<std::uint64_t>(texts + distinct * sizeof(Entry) + row_bytes);
  estimate.collected_bytes = Builder::BytesFor(static_cast<std::uint64_t>(distinct),
                                               static_cast<std::uint64_t>(occurrences)) +
                             static_cast<std::uint64_t>(texts);
  estimate.column_bytes = Builder::BuildBytesFor(static_cast<std::uint64_t>(distinct),
                                                 static_cast<std::uint64_t>(occurrences));
  return estimate;
}

std::uint64_t KeywordColumn::Builder::BytesFor(std::uint64_t distinct, std::uint64_t occurrences) {
  // The array of texts grows by doubling.
  return std::bit_ceil(distinct) * sizeof(std::string_view) +
         data::SlotsFor(distinct * 2) * sizeof(std::uint32_t) + occurrences * sizeof(Occurrence);
}

std::uint64_t KeywordColumn::Builder::BuildBytesFor(std::uint64_t distinct,
                                                    std::uint64_t occurrences) {
  // Sorting the occurrences takes half their size; later each keyword has its end and is sorted.
  return std::max(occurrences * sizeof(Occurrence) / 2,
                  distinct * (sizeof(std::uint64_t) + sizeof(Sorted)));
}

void KeywordColumn::Builder::Add(Row row, std::string_view text) {
  const auto text_of = [this](std::uint32_t keyword) { return texts_[keyword]; };
  data::MakeSlotFor(texts_.size(), slots_, text_of);
  std::uint32_t& keyword = slots_[data::FindSlot(text, slots_, text_of)];
  if (keyword == data::kEmptySlot) {
    keyword = static_cast<std::uint32_t>(texts_.size());
    texts_.push_back(Keep(text));
  }
  occurrences_.push_back({keyword, row});
}

std::string_view KeywordColumn::Builder::Keep(std::string_view text) {
  if (kept_.empty() || kept_.back().capacity() - kept_.back().size() < text.size()) {
    kept_.emplace_back().reserve(std::max(kKeptBytes, text.size()));
  }
  std::vector<char>& block = kept_.back();
  const std::size_t begin = block.size();
  block.insert(block.end(), text.begin(), text.end());
  return {block.data() + begin, text.size()};
}

KeywordColumn KeywordColumn::Builder::Build(std::size_t row_count) && {
  // By keyword, then by row, because the sort is stable. Repeats within a row become adjacent.
  std::ranges::stable_sort(occurrences_, {}, &Occurrence::keyword);
  const auto same = [](const Occurrence& a, const Occurrence& b) {
    return a.keyword == b.keyword && a.row == b.row;
  };
  occurrences_.erase(std::unique(occurrences_.begin(), occurrences_.end(), same),
                     occurrences_.end());
  std::vector<std::uint64_t> ends(texts_.size());
  for (std::size_t i = 0; i < occurrences_.size(); ++i) ends[occurrences_[i].keyword] = i + 1;

  const std::vector<Sorted> sorted = SortedTexts();
  KeywordColumn column;
  column.entries_.reserve(sorted.size());
  std::size_t text_bytes = 0;
  for (const Sorted& each : sorted) text_bytes += each.folded.size() + each.text.size();
  column.texts_.reserve(text_bytes);
  column.rows_.reserve(RowsOfRare(ends));
  std::vector<Row> rows;
  for (const auto& [folded, text, keyword] : sorted) {
    Entry entry;
    column.texts_.insert(column.texts_.end(), folded.begin(), folded.end());
    entry.folded_end = column.texts_.size();
    column.texts_.insert(column.texts_.end(), text.begin(), text.end());
    entry.text_end = column.texts_.size();

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
  column.bitmaps_.shrink_to_fit();
  return column;
}

std::vector<KeywordColumn::Builder::Sorted> KeywordColumn::Builder::SortedTexts() {
  std::vector<Sorted> sorted;
  sorted.reserve(texts_.size());
  for (const std::string_view text : texts_) {
    const std::string folded = FoldText(text);
    // Most folded texts of identifiers are the text itself.
    sorted.push_back(
        {folded == text ? text : Keep(folded), text, static_cast<std::uint32_t>(sorted.size())});
  }
  std::ranges::sort(sorted);
  return sorted;
}

std::size_t KeywordColumn::Builder::RowsOfRare(const std::vector<std::uint64_t>& ends) {
  std::size_t rows = 0;
  for (std::size_t keyword = 0; keyword < ends.size(); ++keyword) {
    const std::uint64_t count = ends[keyword] - (keyword == 0 ? 0 : ends[keyword - 1]);
    if (count < kBitmapRowsMin) rows += count;
  }
  return rows;
}

std::vector<std::string_view> SplitKeywords(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    const std::string_view part = Trimmed(text.substr(0, end));
    if (!part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

}  // namespace simile::filter

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filter/row_set.h"
#include "simile/row_mask.h"

namespace simile::filter {

// The rows of each keyword. Keywords that differ only in letter case and accents are one
// (FoldText). Immutable once built; safe to share.
class KeywordColumn {
 public:
  class Builder;

  std::size_t keyword_count() const { return entries_.size(); }
  // As the first row with it spells it. Keywords are numbered in the order of their folded text.
  std::string_view Spelling(std::size_t keyword) const;
  std::uint64_t RowsOf(std::size_t keyword) const { return entries_[keyword].row_count; }

  // The number of a keyword, ignoring case and accents; nothing when no row has it.
  std::optional<std::uint32_t> Find(std::string_view text) const;
  // Adds the rows of a keyword.
  void AddRowsOf(std::size_t keyword, RowMask& mask) const;
  // The work of that, as RowSet::looks.
  std::uint64_t LooksFor(std::size_t keyword) const;
  // The first row with the keyword that the mask allows. Cost: one pass over the keyword's rows.
  std::optional<Row> FirstRowOf(std::size_t keyword, const RowMask& mask) const;
  // Whether the keyword contains a text that was folded.
  bool Contains(std::size_t keyword, std::string_view folded) const;

  std::uint64_t bytes() const;

  // The memory of the column of a whole collection.
  struct Estimate {
    std::uint64_t bytes = 0;            // of the finished column
    std::uint64_t collected_bytes = 0;  // of its Builder, when every row is added
    std::uint64_t column_bytes = 0;     // the most that Build takes besides
  };
  // Extrapolates from this column, of a sample, to row_count rows (index_estimate.h).
  Estimate EstimateFor(std::size_t sampled_rows, std::size_t row_count) const;

 private:
  struct Entry {
    std::uint64_t folded_end = 0;    // in texts_, where the spelling begins
    std::uint64_t spelling_end = 0;  // where the next keyword begins
    std::uint64_t row_count = 0;
    std::uint64_t place = 0;  // in rows_, or of the bitmap when there are many
  };

  std::string_view Folded(std::size_t keyword) const;
  // Whether a row before this one has the keyword; keywords with a bitmap count as if.
  bool IsBefore(const Entry& entry, std::size_t row) const;

  std::vector<char> texts_;  // folded text and spelling of each keyword
  std::vector<Entry> entries_;
  // Rows of rare keywords, all in one array: most keywords occur in a few rows, and a bitmap takes
  // a hundred bytes or more.
  std::vector<Row> rows_;
  std::vector<RowSet> bitmaps_;
};

// Collects keywords row by row.
class KeywordColumn::Builder {
 public:
  // For so many calls of Add; more may follow.
  void Reserve(std::size_t count) { occurrences_.reserve(count); }
  // A row may have a keyword twice. REQUIRES: rows are added in ascending order.
  void Add(Row row, std::string_view text);
  //   row_count  of the collection
  KeywordColumn Build(std::size_t row_count) &&;

  // Its memory, but for texts, after so many calls of Add with so many different texts, and what
  // Build takes besides the column.
  static std::uint64_t BytesFor(std::uint64_t distinct, std::uint64_t occurrences);
  static std::uint64_t BuildBytesFor(std::uint64_t distinct, std::uint64_t occurrences);

 private:
  struct Occurrence {
    std::uint32_t keyword;
    Row row;
  };

  std::size_t TextBytes() const;  // of folded texts and spellings
  // Rows of keywords that have no bitmap.
  //   ends  [keyword] where its occurrences end
  static std::size_t RowsOfRare(const std::vector<std::uint64_t>& ends);

  // Keeps a text, which never moves, in few large blocks: small ones that are freed when the column
  // is built would leave its own bitmaps scattered over pages that could not be returned.
  std::string_view Keep(std::string_view text);

  std::vector<std::vector<char>> kept_;   // the blocks
  std::vector<std::string_view> folded_;  // [keyword], kept
  std::vector<std::uint32_t> slots_;      // keywords by folded text (data/text_slots.h)
  std::vector<char> spellings_;
  std::vector<std::uint64_t> spelling_ends_;  // [keyword]
  std::vector<Occurrence> occurrences_;
};

}  // namespace simile::filter

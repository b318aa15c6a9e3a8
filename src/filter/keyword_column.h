#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/payload/payload_table.h"
#include "filter/row_set.h"
#include "simile/payload.h"
#include "simile/row_mask.h"

namespace simile::filter {

// The rows of each keyword. Two keywords are equal only when their bytes are equal. Immutable once
// built; safe to share.
class KeywordColumn {
 public:
  class Builder;

  std::size_t keyword_count() const { return entries_.size(); }
  // Keywords are numbered in the order of their folded text (FoldText), equal ones by their bytes.
  std::string_view Text(std::size_t keyword) const;
  std::uint64_t CountRows(std::size_t keyword) const { return entries_[keyword].row_count; }

  // The number of the keyword with these bytes; nothing when no row has it.
  std::optional<std::uint32_t> Find(std::string_view text) const;
  // The numbers of the keywords whose folded text is this one.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  Range FindFolded(std::string_view folded) const;
  // Adds the rows of a keyword.
  void AddRows(std::size_t keyword, RowMask& mask) const;
  // The work of AddRows, as RowSet::looks.
  std::uint64_t LooksFor(std::size_t keyword) const;
  // Whether the folded text of the keyword contains a folded text.
  bool Contains(std::size_t keyword, std::string_view folded) const;

  std::uint64_t bytes() const;

  // The memory of the column of a whole collection.
  struct Estimate {
    std::uint64_t bytes = 0;            // of the finished column
    std::uint64_t collected_bytes = 0;  // of the Builder when every row is added
    std::uint64_t column_bytes = 0;     // the most that Build takes in addition
  };
  // Extrapolates from this column, of a sample, to row_count rows (payload_index.h).
  Estimate EstimateFor(std::size_t sampled_rows, std::size_t row_count) const;

 private:
  struct Entry {
    std::uint64_t folded_end = 0;  // in texts_, where the text begins
    std::uint64_t text_end = 0;    // where the next keyword begins
    std::uint64_t row_count = 0;
    std::uint64_t place = 0;  // in rows_, or in bitmaps_ when the keyword has many rows
  };

  std::string_view Folded(std::size_t keyword) const;
  // Whether a row before this one has the keyword. A keyword stored as a bitmap is treated as
  // present in an earlier row.
  bool IsBefore(const Entry& entry, std::size_t row) const;

  std::vector<char> texts_;  // folded text and text of each keyword
  std::vector<Entry> entries_;
  // Rows of rare keywords, all in one array: most keywords occur in a few rows, and a bitmap takes
  // a hundred bytes or more.
  std::vector<Row> rows_;
  std::vector<RowSet> bitmaps_;
};

// Collects keywords row by row.
class KeywordColumn::Builder {
 public:
  // Prepares for this many calls of Add; more may follow.
  void Reserve(std::size_t count) { occurrences_.reserve(count); }
  // A row may have a keyword twice. REQUIRES: rows are added in ascending order.
  void Add(Row row, std::string_view text);
  //   row_count  of the collection
  KeywordColumn Build(std::size_t row_count) &&;

  // The builder's memory after `occurrences` calls of Add with `distinct` different texts, without
  // the texts, plus the most that Build takes in addition to the column.
  static std::uint64_t BytesFor(std::uint64_t distinct, std::uint64_t occurrences);
  static std::uint64_t BuildBytesFor(std::uint64_t distinct, std::uint64_t occurrences);

 private:
  struct Occurrence {
    std::uint32_t keyword;
    Row row;
  };
  struct Sorted {
    std::string_view folded;
    std::string_view text;
    std::uint32_t keyword = 0;
    friend auto operator<=>(const Sorted&, const Sorted&) = default;
  };

  // In the order of the column.
  std::vector<Sorted> SortedTexts();
  // The number of rows of keywords without a bitmap.
  //   ends  [keyword] where its occurrences end
  static std::size_t RowsOfRare(const std::vector<std::uint64_t>& ends);

  // Keeps a text, which never moves, in a few large blocks. Small blocks, freed when the column is
  // built, would leave the column's bitmaps on pages that could not be returned.
  std::string_view Keep(std::string_view text);

  std::vector<std::vector<char>> kept_;  // the blocks
  std::vector<std::string_view> texts_;  // [keyword], kept
  std::vector<std::uint32_t> slots_;     // keywords by text (data/payload/text_slots.h)
  std::vector<Occurrence> occurrences_;
};

// The parts of "A|B|C" without the white space around them and without empty ones.
// REQUIRES: the separator is not empty.
std::vector<std::string_view> SplitKeywords(std::string_view text, std::string_view separator);

// Calls visit(element) for each element of a list, or visit(value) for any other value.
template <class Visit>
void ForEachElement(const PayloadValue& value, Visit visit) {
  const auto* const list = std::get_if<PayloadList>(&value.value);
  if (list == nullptr) return visit(value);
  for (const PayloadValue& element : *list) visit(element);
}

// Calls visit(keyword) for each keyword of a value: the elements of a list, or a text, which the
// field's separator cuts into several.
// REQUIRES: the value is a text or a list of texts.
template <class Visit>
void ForEachKeyword(const data::FieldInfo& field, const PayloadValue& value, Visit visit) {
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    for (const PayloadValue& element : *list) visit(std::get<std::string>(element.value));
    return;
  }
  const auto& text = std::get<std::string>(value.value);
  if (field.separator.empty()) return visit(std::string_view(text));
  for (const std::string_view part : SplitKeywords(text, field.separator)) visit(part);
}

}  // namespace simile::filter

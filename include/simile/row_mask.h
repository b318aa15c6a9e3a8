#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simile/matrix_view.h"

namespace simile {

// The rows a query may return, one bit a row. Built by the filter, read by every backend.
// Plain value; safe to read from many threads.
class RowMask {
 public:
  // Recognises a mask without reading its rows: masks with the same identity allow the same rows. A
  // copy shares the identity of its source. A mask that changes takes a new identity if anyone else
  // keeps the old one. So a kept identity can be compared with the identity of any later mask.
  using Identity = std::shared_ptr<const char>;

  // A mask over row_count rows that allows none.
  explicit RowMask(std::size_t row_count)
      : row_count_(row_count), words_((row_count + 63) / 64, 0) {}

  std::size_t row_count() const { return row_count_; }
  void Allow(Row row) {
    assert(row < row_count_);
    RenewIdentity();
    words_[row / 64] |= std::uint64_t{1} << (row % 64);
  }
  void Forbid(Row row) {
    assert(row < row_count_);
    RenewIdentity();
    words_[row / 64] &= ~(std::uint64_t{1} << (row % 64));
  }
  bool Allows(Row row) const {
    assert(row < row_count_);
    return ((words_[row / 64] >> (row % 64)) & 1) != 0;
  }
  // Intersection, union and complement. Cost: one pass over the words.
  // REQUIRES: other has as many rows.
  void IntersectWith(const RowMask& other) {
    assert(other.row_count_ == row_count_);
    RenewIdentity();
    for (std::size_t word = 0; word < words_.size(); ++word) words_[word] &= other.words_[word];
  }
  void UniteWith(const RowMask& other) {
    assert(other.row_count_ == row_count_);
    RenewIdentity();
    for (std::size_t word = 0; word < words_.size(); ++word) words_[word] |= other.words_[word];
  }
  void Invert() {
    RenewIdentity();
    for (std::uint64_t& word : words_) word = ~word;
    if (row_count_ % 64 != 0) words_.back() &= (std::uint64_t{1} << (row_count_ % 64)) - 1;
  }
  // Bit r % 64 of word r / 64: whether row r passes. Bits after the last row are 0.
  std::span<const std::uint64_t> words() const { return words_; }
  std::uint64_t bytes() const { return words_.capacity() * sizeof(std::uint64_t); }
  const Identity& identity() const { return identity_; }
  // Compares the rows that pass. Cost: one pass over the words.
  friend bool operator==(const RowMask& a, const RowMask& b) {
    return a.row_count_ == b.row_count_ && a.words_ == b.words_;
  }

  // How many rows pass. Cost: one pass over the words.
  std::size_t AllowedCount() const { return AllowedCount(0, static_cast<Row>(row_count_)); }
  // How many of the rows [begin, end) pass. Cost: one pass over their words.
  std::size_t AllowedCount(Row begin, Row end) const {
    std::size_t count = 0;
    for (std::size_t word = begin / 64; word * 64 < end; ++word) {
      count += static_cast<std::size_t>(std::popcount(WordWithin(word, begin, end)));
    }
    return count;
  }
  // How many of these rows pass. Cost: O(rows).
  std::size_t AllowedCount(std::span<const Row> rows) const {
    std::size_t count = 0;
    for (const Row row : rows) count += Allows(row) ? 1 : 0;
    return count;
  }
  // Calls visit(row) for every row of [begin, end) that passes, ascending.
  template <class Visit>
  void ForEachAllowed(Row begin, Row end, Visit visit) const {
    for (std::size_t word = begin / 64; word * 64 < end; ++word) {
      for (std::uint64_t bits = WordWithin(word, begin, end); bits != 0; bits &= bits - 1) {
        visit(static_cast<Row>(word * 64 + static_cast<std::size_t>(std::countr_zero(bits))));
      }
    }
  }

 private:
  // Call before the rows change. An identity that nobody else keeps stays, because nothing can be
  // compared with it.
  void RenewIdentity() {
    if (identity_.use_count() != 1) identity_ = std::make_shared<const char>();
  }

  // The bits of a word whose rows are in [begin, end). REQUIRES: the word has rows of the range.
  std::uint64_t WordWithin(std::size_t word, Row begin, Row end) const {
    assert(end <= row_count_);
    std::uint64_t bits = words_[word];
    const std::size_t first = word * 64;
    if (begin > first) bits &= ~std::uint64_t{0} << (begin - first);
    if (end < first + 64) bits &= (std::uint64_t{1} << (end - first)) - 1;
    return bits;
  }

  std::size_t row_count_;
  std::vector<std::uint64_t> words_;
  Identity identity_ = std::make_shared<const char>();
};

}  // namespace simile

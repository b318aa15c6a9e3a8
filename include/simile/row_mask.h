#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simile/matrix_view.h"

namespace simile {

// The rows a query may return, one bit a row. Built by the filter, read by every backend.
// Plain value; safe to read from many threads.
class RowMask {
 public:
  // A mask over row_count rows that lets none pass.
  explicit RowMask(std::size_t row_count)
      : row_count_(row_count), words_((row_count + 63) / 64, 0) {}

  std::size_t row_count() const { return row_count_; }
  void Allow(Row row) {
    assert(row < row_count_);
    words_[row / 64] |= std::uint64_t{1} << (row % 64);
  }
  void Forbid(Row row) {
    assert(row < row_count_);
    words_[row / 64] &= ~(std::uint64_t{1} << (row % 64));
  }
  bool Allows(Row row) const {
    assert(row < row_count_);
    return ((words_[row / 64] >> (row % 64)) & 1) != 0;
  }
  // How many rows pass. Cost: one pass over the words.
  std::size_t AllowedCount() const {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }

 private:
  std::size_t row_count_;
  std::vector<std::uint64_t> words_;
};

}  // namespace simile

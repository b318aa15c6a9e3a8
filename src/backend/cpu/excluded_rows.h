#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "simile/matrix_view.h"

namespace simile::backend::cpu {

// Tests whether a query excludes a row. Runs for every hit: a binary search of 200 excluded rows
// takes eight steps, the bit filter in front of it mostly one. Only rows whose bit is set are
// searched for. Reset before use; afterwards any thread may read.
class ExcludedRows {
 public:
  //   rows  ascending; borrowed
  void Reset(std::span<const Row> rows) {
    rows_ = rows;
    if (rows.size() < kRowsMin) return;
    bits_.fill(0);
    for (const Row row : rows) bits_[WordOf(row)] |= BitOf(row);
  }

  bool Contains(Row row) const {
    if (rows_.empty()) return false;
    if (rows_.size() >= kRowsMin && (bits_[WordOf(row)] & BitOf(row)) == 0) return false;
    return std::binary_search(rows_.begin(), rows_.end(), row);
  }

 private:
  static constexpr std::size_t kRowsMin = 4;  // below, the search alone is as fast (estimated)
  static constexpr std::size_t kBits = std::size_t{1} << 14;

  static std::size_t WordOf(Row row) { return row % kBits / 64; }
  static std::uint64_t BitOf(Row row) { return std::uint64_t{1} << (row % 64); }

  std::span<const Row> rows_;
  std::array<std::uint64_t, kBits / 64> bits_;  // not set below kRowsMin rows
};

}  // namespace simile::backend::cpu

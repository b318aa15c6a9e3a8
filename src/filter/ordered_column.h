#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "simile/row_mask.h"

namespace simile::filter {

// Which values pass a comparison, relative to the value that the filter names.
struct Sides {
  bool below = false;
  bool equal = false;
  bool above = false;

  bool operator==(const Sides&) const = default;
};

// The values of a field that has an order, sorted, with their rows. Immutable once built; safe to
// share.
template <class Value>
class OrderedColumn {
 public:
  OrderedColumn() = default;
  //   values, rows  of the same length, in any order; each row once
  // Cost: O(n log n).
  OrderedColumn(const std::vector<Value>& values, const std::vector<Row>& rows) {
    assert(values.size() == rows.size());
    std::vector<std::uint32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return values[i]; });
    values_.reserve(order.size());
    rows_.reserve(order.size());
    for (const std::uint32_t i : order) {
      values_.push_back(values[i]);
      rows_.push_back(rows[i]);
    }
  }

  bool empty() const { return values_.empty(); }
  // REQUIRES: not empty.
  Value least() const { return values_.front(); }
  Value greatest() const { return values_.back(); }

  // Cost: O(n).
  std::size_t DistinctCount() const {
    std::size_t count = empty() ? 0 : 1;
    for (std::size_t i = 1; i < values_.size(); ++i) {
      if (values_[i - 1] < values_[i]) ++count;
    }
    return count;
  }

  // The rows whose value passes: those below, equal and above. Cost: O(log n).
  std::array<std::span<const Row>, 3> RowsThatPass(Sides sides, Value value) const {
    const auto [low, high] = std::equal_range(values_.begin(), values_.end(), value);
    const auto begin = static_cast<std::size_t>(low - values_.begin());
    const auto end = static_cast<std::size_t>(high - values_.begin());
    const std::span<const Row> rows(rows_);
    const std::span<const Row> none;
    return {sides.below ? rows.first(begin) : none,
            sides.equal ? rows.subspan(begin, end - begin) : none,
            sides.above ? rows.subspan(end) : none};
  }

  // Calls visit(row) by descending value, equal values by row, until it returns false.
  template <class Visit>
  void VisitDescending(Visit visit) const {
    for (std::size_t end = values_.size(); end > 0;) {
      std::size_t begin = end - 1;
      while (begin > 0 && !(values_[begin - 1] < values_[end - 1])) --begin;
      for (std::size_t i = begin; i < end; ++i) {
        if (!visit(rows_[i])) return;
      }
      end = begin;
    }
  }

  std::uint64_t bytes() const {
    return values_.capacity() * sizeof(Value) + rows_.capacity() * sizeof(Row);
  }

 private:
  std::vector<Value> values_;  // ascending
  std::vector<Row> rows_;      // [values]
};

}  // namespace simile::filter

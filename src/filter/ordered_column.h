#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "simile/row_mask.h"

namespace simile::filter {

// An integer or a double, compared exactly. Beyond 2^53 a double alone would make neighbouring
// integers equal.
struct Number {
  double value = 0;         // an integer is rounded
  std::int32_t beyond = 0;  // integer minus value; 0 for a double

  Number() = default;
  explicit Number(double number) : value(number) {}
  explicit Number(std::int64_t whole) : value(static_cast<double>(whole)) {
    // The greatest integers are rounded to 2^63, which is no int64.
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    const bool is_past_end = value >= 0x1p63;
    const std::int64_t rounded = is_past_end ? kMax : static_cast<std::int64_t>(value);
    beyond = static_cast<std::int32_t>(whole - rounded) - (is_past_end ? 1 : 0);
  }

  // Whether the number is an integer that `value` alone does not hold.
  bool is_rounded() const { return beyond != 0; }
  // REQUIRES: is_rounded().
  std::int64_t whole() const {
    if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max() + (beyond + 1);
    return static_cast<std::int64_t>(value) + beyond;
  }

  // Compares `value`, then `beyond`: rounding never reverses two integers.
  friend auto operator<=>(const Number&, const Number&) = default;
};

// Which values pass a comparison: below, equal to or above the value that the filter names.
struct Sides {
  bool below = false;
  bool equal = false;
  bool above = false;

  bool operator==(const Sides&) const = default;
};

// How far an order has been visited. Initially at its start.
struct VisitedPlace {
  std::size_t above = 0;  // rows before the run of equal values that is being visited
  std::size_t equal = 0;  // visited rows of that run
};

// The values of a field that has an order, sorted, with their rows. A row of lists occurs once for
// each of its distinct elements. Immutable once built; safe to share.
template <class Value>
class OrderedColumn {
 public:
  OrderedColumn() = default;
  //   values, rows  of the same length, in any order; a row may have several values, each once
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
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (i == 0 || values_[i - 1] < values_[i]) ++distinct_count_;
    }
  }

  bool empty() const { return values_.empty(); }
  // REQUIRES: not empty.
  Value least() const { return values_.front(); }
  Value greatest() const { return values_.back(); }

  // The number of values. A value counts once for each of its rows.
  std::size_t size() const { return values_.size(); }
  std::size_t distinct_count() const { return distinct_count_; }

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

  // Where a value begins among all, in ascending order; nothing when no row has it. Cost: O(log n).
  std::optional<std::uint32_t> Find(Value value) const {
    const auto found = std::lower_bound(values_.begin(), values_.end(), value);
    if (found == values_.end() || value < *found) return std::nullopt;
    return static_cast<std::uint32_t>(found - values_.begin());
  }
  // REQUIRES: place < size().
  Value ValueAt(std::size_t place) const { return values_[place]; }
  // The rows of the value that begins at the place; none when no value begins there. Cost: O(log
  // n).
  std::span<const Row> RowsAt(std::size_t place) const {
    if (place > 0 && !(values_[place - 1] < values_[place])) return {};
    const auto begin = values_.begin() + static_cast<std::ptrdiff_t>(place);
    const auto end = std::upper_bound(begin, values_.end(), *begin);
    return std::span(rows_).subspan(place, static_cast<std::size_t>(end - begin));
  }

  // Calls visit(row) by descending value, equal values by row, until it returns false. Continues at
  // `place` and moves it.
  template <class Visit>
  void VisitDescending(VisitedPlace& place, Visit visit) const {
    while (place.above < values_.size()) {
      const std::size_t end = values_.size() - place.above;
      const std::size_t begin = BeginOfEqual(end);
      while (begin + place.equal < end) {
        if (!visit(rows_[begin + place.equal++])) return;
      }
      place = {.above = values_.size() - begin, .equal = 0};
    }
  }

  // Calls visit(row, value) for every row, by ascending value, until it returns false.
  template <class Visit>
  void VisitAscending(Visit visit) const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!visit(rows_[i], values_[i])) return;
    }
  }

  std::uint64_t bytes() const {
    return values_.capacity() * sizeof(Value) + rows_.capacity() * sizeof(Row);
  }

 private:
  // The begin of the run of equal values that ends at `end`.
  std::size_t BeginOfEqual(std::size_t end) const {
    if (end == 1 || values_[end - 2] < values_[end - 1]) return end - 1;
    const auto last = values_.begin() + static_cast<std::ptrdiff_t>(end - 1);
    return static_cast<std::size_t>(std::lower_bound(values_.begin(), last, *last) -
                                    values_.begin());
  }

  std::vector<Value> values_;  // ascending
  std::vector<Row> rows_;      // [values]
  std::size_t distinct_count_ = 0;
};

}  // namespace simile::filter

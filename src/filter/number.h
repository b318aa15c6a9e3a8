#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace simile::filter {

// An integer or a double, compared exactly: beyond 2^53 a double alone would take neighbouring
// integers for one.
struct Number {
  double value = 0;         // an integer is rounded
  std::int32_t beyond = 0;  // what the rounding took away, 0 for a double

  Number() = default;
  explicit Number(double number) : value(number) {}
  explicit Number(std::int64_t whole) : value(static_cast<double>(whole)) {
    // 2^63 itself, to which the greatest integers are rounded, is no integer.
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

}  // namespace simile::filter

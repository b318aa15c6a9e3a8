#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace simile::backend::cpu {

// One pass of a radix sort: copies the items in ascending order of their digits, those of one digit
// in the order that they have.
//   to        [from.size()]  written; not `from`
//   digit_of  of an item, below 2^kBits
template <unsigned kBits, class Item, class DigitOf>
void SortByDigit(std::span<const Item> from, Item* to, DigitOf digit_of) {
  std::array<std::uint32_t, std::size_t{1} << kBits> next{};
  for (const Item& item : from) ++next[digit_of(item)];
  std::uint32_t sum = 0;
  for (std::uint32_t& first : next) sum += std::exchange(first, sum);
  for (const Item& item : from) to[next[digit_of(item)]++] = item;
}

}  // namespace simile::backend::cpu

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/hash/hash.h>
#include <absl/strings/string_view.h>

namespace simile::data {

// An open table of the numbers 0, 1, 2, ... by the hash of their texts, which the owner keeps:
// linear probing, at most two thirds full. Unlike the tables of absl it stays whole when it has no
// memory to grow.
inline constexpr std::uint32_t kEmptySlot = std::numeric_limits<std::uint32_t>::max();

// Three slots for every two texts: short probes at six bytes a text.
constexpr std::size_t SlotsFor(std::size_t count) { return count + count / 2 + 8; }

// The slot that holds the text's number, or the empty one where it belongs.
//   text_of  the text of a number
template <class TextOf>
std::size_t FindSlot(std::string_view text, const std::vector<std::uint32_t>& slots,
                     const TextOf& text_of) {
  // absl seeds its hash per process, so no file can make all texts collide.
  const std::size_t hash =
      absl::Hash<absl::string_view>{}(absl::string_view(text.data(), text.size()));
  __extension__ using Wide = unsigned __int128;
  auto slot = static_cast<std::size_t>((static_cast<Wide>(hash) * slots.size()) >> 64);
  while (slots[slot] != kEmptySlot && text_of(slots[slot]) != text) {
    slot = slot + 1 == slots.size() ? 0 : slot + 1;
  }
  return slot;
}

// Makes space for one more text beside `count`. Without memory for that the table stays as it is.
template <class TextOf>
void MakeSlotFor(std::size_t count, std::vector<std::uint32_t>& slots, const TextOf& text_of) {
  if (SlotsFor(count + 1) <= slots.size()) return;
  std::vector<std::uint32_t> wider(SlotsFor(count * 2), kEmptySlot);
  for (std::uint32_t number = 0; number < count; ++number) {
    wider[FindSlot(text_of(number), wider, text_of)] = number;
  }
  slots = std::move(wider);
}

}  // namespace simile::data

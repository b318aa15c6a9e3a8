#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plan/capacity.h"

namespace simile::cli {

struct CardFacts {
  std::string name;                // "A100-SXM4-40GB"
  int capability = 0;              // 75 for sm_75
  double memory_gib = 0;           // of its data sheet
  std::uint64_t memory_bytes = 0;  // that a driver reports, about
  DeviceSpeed speed;
  std::string_view source;  // of the facts: "data sheet"
};

// By the name that the driver gives ("NVIDIA A100-SXM4-80GB") or the card's own ("T4"), in any
// case, with or without NVIDIA, Tesla, GeForce, Quadro, RTX and GTX. A name that fits several forms
// of a card means the first in the table. nullopt where a word of the name is not known: a laptop's
// card and a part of a divided one are others than the card that they are named after.
std::optional<CardFacts> FindCardFacts(std::string_view name);

// All cards of the table.
std::vector<CardFacts> KnownCards();

// What a card of this capability runs, by the size of a batch; 0: not known. One phrase each, as
// `simile plan` prints them.
std::vector<std::string> ListStrategies(int capability);

// The sentence that offers cards for a name that no card has: the cards whose names have all words
// of the name, else the card with the nearest name. Empty when no card is near: ` It may be "Quadro
// RTX 6000" or "RTX 6000 Ada Generation".`
std::string CardsLike(std::string_view name);

}  // namespace simile::cli

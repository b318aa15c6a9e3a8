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
  double memory_gib = 0;           // by its data sheet
  std::uint64_t memory_bytes = 0;  // about what a driver reports
  DeviceSpeed speed;
  std::string_view source;  // where the facts come from: "data sheet"
};

// Finds a card by the driver's name ("NVIDIA A100-SXM4-80GB") or by the card's own name ("T4"), in
// any case, with or without NVIDIA, Tesla, GeForce, Quadro, RTX and GTX. If several forms of a card
// fit, returns the first in the table. nullopt if the name has an unknown word, because a laptop's
// card, or a part of a divided card, differs from the card after which it is named.
std::optional<CardFacts> FindCardFacts(std::string_view name);

// All cards of the table.
std::vector<CardFacts> KnownCards();

// The strategies that a card of this capability runs, by the size of a batch: one phrase each, as
// `simile plan` prints them. Empty for 0, an unknown capability.
std::vector<std::string> ListStrategies(int capability);

// The sentence that offers cards for an unknown name: the cards whose names contain all its words,
// or otherwise the card with the nearest name. Empty if no card is near: ` It may be "Quadro RTX
// 6000" or "RTX 6000 Ada Generation".`
std::string CardsLike(std::string_view name);

}  // namespace simile::cli

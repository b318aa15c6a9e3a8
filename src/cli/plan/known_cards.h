#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/plan/capacity.h"

namespace simile::cli {

struct CardFacts {
  int capability = 0;  // 75 for sm_75
  SpeedLimits speed;   // of its memory, and fp16 multiply-adds of its tensor cores, dense
};

// By the name that the driver gives ("NVIDIA A100-SXM4-80GB") or the card's own ("T4"); nullopt for
// one that is not in the table.
std::optional<CardFacts> FactsOfCard(std::string_view name);

// The names in the table, as a message lists them.
std::string KnownCardNames();

}  // namespace simile::cli

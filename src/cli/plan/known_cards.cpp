#include "cli/plan/known_cards.h"

#include <algorithm>
#include <array>

namespace simile::cli {
namespace {

struct KnownCard {
  std::string_view name;  // a part of the driver's; the first that matches counts
  int capability;
  double bytes_per_s;
  double flops;  // fp16 on tensor cores, without sparsity; a multiply-add is two
};

// Compute capabilities from NVIDIA's list of them, the rest from the data sheet of each
// card (nvidia.com: "GPU memory bandwidth", "FP16 Tensor Core"; half of a number "with sparsity").
// The larger one where NVIDIA gives two, as of the T4's memory.
constexpr std::array<KnownCard, 18> kKnownCards = {{{"H200 NVL", 90, 4.8e12, 835.5e12},
                                                    {"H200", 90, 4.8e12, 989.5e12},
                                                    {"H100 NVL", 90, 3.9e12, 835.5e12},
                                                    {"H100 PCIe", 90, 2.0e12, 756.5e12},
                                                    {"H100", 90, 3.35e12, 989.5e12},
                                                    {"A100-SXM4-80GB", 80, 2.039e12, 312e12},
                                                    {"A100 80GB PCIe", 80, 1.935e12, 312e12},
                                                    {"A100", 80, 1.555e12, 312e12},
                                                    {"L40S", 89, 864e9, 362e12},
                                                    {"L4", 89, 300e9, 121e12},
                                                    {"A30", 80, 933e9, 165e12},
                                                    {"A10", 86, 600e9, 125e12},
                                                    {"RTX A6000", 86, 768e9, 155e12},
                                                    {"RTX A5000", 86, 768e9, 111e12},
                                                    {"V100S", 70, 1.134e12, 130e12},
                                                    {"V100-PCIE", 70, 900e9, 112e12},
                                                    {"V100", 70, 900e9, 125e12},
                                                    {"T4", 75, 320e9, 65e12}}};

// Whether the part is in the name as a word: "A10" is not in "NVIDIA A100".
bool HasWord(std::string_view name, std::string_view part) {
  const std::size_t at = name.find(part);
  if (at == std::string_view::npos) return false;
  const auto is_letter_or_digit = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  const std::size_t end = at + part.size();
  return (at == 0 || !is_letter_or_digit(name[at - 1])) &&
         (end == name.size() || !is_letter_or_digit(name[end]));
}

}  // namespace

std::optional<CardFacts> FactsOfCard(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kKnownCards, [&](const KnownCard& card) { return HasWord(name, card.name); });
  if (found == kKnownCards.end()) return std::nullopt;
  return CardFacts{found->capability, {found->bytes_per_s, found->flops / 2, {}}};
}

std::string KnownCardNames() {
  std::string names;
  for (const KnownCard& card : kKnownCards) {
    if (!names.empty()) names += ", ";
    names += card.name;
  }
  return names;
}

}  // namespace simile::cli

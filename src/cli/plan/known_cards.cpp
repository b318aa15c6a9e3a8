#include "cli/plan/known_cards.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "backend/accelerator_kinds.h"
#include "base/message_text.h"
#include "base/nearest_name.h"

namespace simile::cli {
namespace {

// Whether error correction takes a sixteenth of the card's memory. Cards use it unless it is turned
// off. HBM has separate bits for it.
enum class Ecc : std::uint8_t { kNone, kTakesASixteenth };
constexpr Ecc kWhole = Ecc::kNone;
constexpr Ecc kEccTakes = Ecc::kTakesASixteenth;

// Where the rates come from: NVIDIA's data sheet or page of the card, or the white paper on its
// generation. Only the white papers give the rate of fp16 products added in fp32 on a GeForce card,
// which is half the rate on its page.
enum class Source : std::uint8_t { kCard, kGeneration };
constexpr Source kCard = Source::kCard;
constexpr Source kGeneration = Source::kGeneration;

struct KnownCard {
  std::string_view name;
  std::string_view needs;   // words that a name must contain
  std::string_view allows;  // words that it may contain, besides the words of any card
  int capability;
  double memory_gib;
  Ecc ecc;
  double gb_per_s;
  double tflops;       // of fp16 products added in fp32, without sparsity; plain fp32 on Pascal
  double fp32_tflops;  // for cards whose scans do not use tensor cores; else 0
  Source source;
};

// Compute capabilities from NVIDIA's list of them (developer.nvidia.com/cuda-gpus). If NVIDIA gives
// two rates, the table has the larger one, so that a floor stays a floor. docs/cards.md contains
// this table and says what it was compared with.
constexpr std::array<KnownCard, 119> kKnownCards = {{
    {"B200", "b200", "sxm sxm6", 100, 180, kWhole, 8000, 2250, 0, kCard},
    {"H200", "h200", "sxm sxm5", 90, 141, kWhole, 4800, 989.5, 0, kCard},
    {"H200 NVL", "h200 nvl", "", 90, 141, kWhole, 4800, 835.5, 0, kCard},
    {"GH200 480GB", "gh200", "480gb", 90, 96, kWhole, 4000, 989.5, 0, kCard},
    {"H100 80GB HBM3", "h100", "sxm sxm5 hbm3", 90, 80, kWhole, 3350, 989.5, 0, kCard},
    {"H100 NVL", "h100 nvl", "", 90, 94, kWhole, 3900, 835.5, 0, kCard},
    {"H100 PCIe", "h100 pcie", "hbm2e", 90, 80, kWhole, 2000, 756.5, 0, kCard},
    {"H800", "h800", "sxm sxm5 hbm3", 90, 80, kWhole, 3350, 989.5, 0, kCard},
    {"A100-SXM4-40GB", "a100", "sxm sxm4", 80, 40, kWhole, 1555, 312, 0, kCard},
    {"A100-SXM4-80GB", "a100 80gb", "sxm sxm4", 80, 80, kWhole, 2039, 312, 0, kCard},
    {"A100-PCIE-40GB", "a100 pcie", "", 80, 40, kWhole, 1555, 312, 0, kCard},
    {"A100 80GB PCIe", "a100 80gb pcie", "", 80, 80, kWhole, 1935, 312, 0, kCard},
    {"A800-SXM4-80GB", "a800", "sxm sxm4", 80, 80, kWhole, 2039, 312, 0, kCard},
    {"A800 80GB PCIe", "a800 pcie", "", 80, 80, kWhole, 1935, 312, 0, kCard},
    {"A30", "a30", "pcie", 80, 24, kWhole, 933, 165, 0, kCard},
    {"A40", "a40", "pcie", 86, 48, kEccTakes, 696, 149.7, 0, kCard},
    {"A10", "a10", "pcie", 86, 24, kEccTakes, 600, 125, 0, kCard},
    {"A10G", "a10g", "", 86, 24, kEccTakes, 600, 70, 0, kCard},
    {"A16", "a16", "pcie", 86, 16, kEccTakes, 200, 17.9, 0, kCard},
    {"A2", "a2", "pcie", 86, 16, kEccTakes, 200, 18, 0, kCard},
    {"L40S", "l40s", "", 89, 48, kEccTakes, 864, 362, 0, kCard},
    {"L40", "l40", "", 89, 48, kEccTakes, 864, 181, 0, kCard},
    {"L4", "l4", "", 89, 24, kEccTakes, 300, 121, 0, kCard},
    {"T4", "t4", "", 75, 16, kEccTakes, 320, 65, 0, kCard},
    {"T4G", "t4g", "", 75, 16, kEccTakes, 320, 65, 0, kCard},
    {"V100S-PCIE-32GB", "v100s", "pcie", 70, 32, kWhole, 1134, 130, 16.4, kCard},
    {"V100-SXM2-16GB", "v100", "sxm sxm2", 70, 16, kWhole, 900, 125, 15.7, kCard},
    {"V100-SXM2-32GB", "v100 32gb", "sxm sxm2", 70, 32, kWhole, 900, 125, 15.7, kCard},
    {"V100-PCIE-16GB", "v100 pcie", "", 70, 16, kWhole, 900, 112, 14, kCard},
    {"V100-PCIE-32GB", "v100 pcie 32gb", "", 70, 32, kWhole, 900, 112, 14, kCard},
    {"P100-SXM2-16GB", "p100", "sxm sxm2", 60, 16, kWhole, 732, 10.6, 10.6, kCard},
    {"P100-PCIE-16GB", "p100 pcie", "", 60, 16, kWhole, 732, 9.3, 9.3, kCard},
    {"P100-PCIE-12GB", "p100 12gb", "pcie", 60, 12, kWhole, 549, 9.3, 9.3, kCard},
    {"P40", "p40", "", 61, 24, kEccTakes, 346, 11.8, 11.8, kCard},
    {"P4", "p4", "", 61, 8, kEccTakes, 192, 5.5, 5.5, kCard},
    {"GeForce RTX 5090", "5090", "", 120, 32, kWhole, 1792, 209.5, 0, kGeneration},
    {"GeForce RTX 5090 D", "5090 d", "", 120, 32, kWhole, 1792, 209.5, 0, kGeneration},
    {"GeForce RTX 5080", "5080", "", 120, 16, kWhole, 960, 112.6, 0, kGeneration},
    {"GeForce RTX 5070 Ti", "5070 ti", "", 120, 16, kWhole, 896, 87.9, 0, kGeneration},
    {"GeForce RTX 5070", "5070", "", 120, 12, kWhole, 672, 61.7, 0, kGeneration},
    {"GeForce RTX 5060 Ti 16GB", "5060 ti 16gb", "", 120, 16, kWhole, 448, 47.4, 0, kGeneration},
    {"GeForce RTX 5060 Ti 8GB", "5060 ti 8gb", "", 120, 8, kWhole, 448, 47.4, 0, kGeneration},
    {"GeForce RTX 5060", "5060", "", 120, 8, kWhole, 448, 38.4, 0, kGeneration},
    {"GeForce RTX 5050", "5050", "", 120, 8, kWhole, 320, 26.3, 0, kGeneration},
    {"GeForce RTX 4090", "4090", "", 89, 24, kWhole, 1008, 165.2, 0, kGeneration},
    {"GeForce RTX 4090 D", "4090 d", "", 89, 24, kWhole, 1008, 147.1, 0, kGeneration},
    {"GeForce RTX 4080 SUPER", "4080 super", "", 89, 16, kWhole, 736, 104.4, 0, kGeneration},
    {"GeForce RTX 4080", "4080", "", 89, 16, kWhole, 717, 97.5, 0, kGeneration},
    {"GeForce RTX 4070 Ti SUPER", "4070 ti super", "", 89, 16, kWhole, 672, 88.2, 0, kGeneration},
    {"GeForce RTX 4070 Ti", "4070 ti", "", 89, 12, kWhole, 504, 80.2, 0, kGeneration},
    {"GeForce RTX 4070 SUPER", "4070 super", "", 89, 12, kWhole, 504, 71, 0, kGeneration},
    {"GeForce RTX 4070", "4070", "", 89, 12, kWhole, 504, 58.3, 0, kGeneration},
    {"GeForce RTX 4060 Ti 8GB", "4060 ti", "", 89, 8, kWhole, 288, 44.1, 0, kGeneration},
    {"GeForce RTX 4060 Ti 16GB", "4060 ti 16gb", "", 89, 16, kWhole, 288, 44.1, 0, kGeneration},
    {"GeForce RTX 4060", "4060", "", 89, 8, kWhole, 272, 30.2, 0, kGeneration},
    {"GeForce RTX 3090 Ti", "3090 ti", "", 86, 24, kWhole, 1008, 80, 0, kGeneration},
    {"GeForce RTX 3090", "3090", "", 86, 24, kWhole, 936, 71, 0, kGeneration},
    {"GeForce RTX 3080 Ti", "3080 ti", "", 86, 12, kWhole, 912, 68.2, 0, kGeneration},
    {"GeForce RTX 3080 10GB", "3080", "", 86, 10, kWhole, 760, 59.5, 0, kGeneration},
    {"GeForce RTX 3080 12GB", "3080 12gb", "", 86, 12, kWhole, 912, 61.3, 0, kGeneration},
    {"GeForce RTX 3070 Ti", "3070 ti", "", 86, 8, kWhole, 608, 43.5, 0, kGeneration},
    {"GeForce RTX 3070", "3070", "", 86, 8, kWhole, 448, 40.6, 0, kGeneration},
    {"GeForce RTX 3060 Ti", "3060 ti", "", 86, 8, kWhole, 448, 32.4, 0, kGeneration},
    {"GeForce RTX 3060 12GB", "3060", "", 86, 12, kWhole, 360, 25.5, 0, kGeneration},
    {"GeForce RTX 3060 8GB", "3060 8gb", "", 86, 8, kWhole, 240, 25.5, 0, kGeneration},
    {"GeForce RTX 3050 8GB", "3050", "", 86, 8, kWhole, 224, 18.2, 0, kGeneration},
    {"GeForce RTX 3050 6GB", "3050 6gb", "", 86, 6, kWhole, 168, 13.5, 0, kGeneration},
    {"GeForce RTX 2080 Ti", "2080 ti", "", 75, 11, kWhole, 616, 53.8, 0, kGeneration},
    {"GeForce RTX 2080 SUPER", "2080 super", "", 75, 8, kWhole, 496, 44.6, 0, kGeneration},
    {"GeForce RTX 2080", "2080", "", 75, 8, kWhole, 448, 40.3, 0, kGeneration},
    {"GeForce RTX 2070 SUPER", "2070 super", "", 75, 8, kWhole, 448, 36.3, 0, kGeneration},
    {"GeForce RTX 2070", "2070", "", 75, 8, kWhole, 448, 29.9, 0, kGeneration},
    {"GeForce RTX 2060 SUPER", "2060 super", "", 75, 8, kWhole, 448, 28.7, 0, kGeneration},
    {"GeForce RTX 2060 6GB", "2060", "", 75, 6, kWhole, 336, 25.8, 0, kGeneration},
    {"GeForce RTX 2060 12GB", "2060 12gb", "", 75, 12, kWhole, 336, 28.7, 0, kGeneration},
    {"TITAN RTX", "titan rtx", "", 75, 24, kWhole, 672, 130.5, 0, kGeneration},
    {"TITAN V", "titan v", "", 70, 12, kWhole, 652.8, 110, 14.9, kCard},
    {"TITAN Xp", "titan xp", "", 61, 12, kWhole, 547.7, 12.1, 12.1, kCard},
    {"TITAN X (Pascal)", "titan x pascal", "", 61, 12, kWhole, 480, 11, 11, kCard},
    {"GeForce GTX 1080 Ti", "1080 ti", "", 61, 11, kWhole, 484, 11.3, 11.3, kCard},
    {"GeForce GTX 1080", "1080", "", 61, 8, kWhole, 320, 8.9, 8.9, kCard},
    {"GeForce GTX 1070 Ti", "1070 ti", "", 61, 8, kWhole, 256, 8.2, 8.2, kCard},
    {"GeForce GTX 1070", "1070", "", 61, 8, kWhole, 256, 6.5, 6.5, kCard},
    {"GeForce GTX 1060 6GB", "1060", "", 61, 6, kWhole, 192, 4.4, 4.4, kCard},
    {"GeForce GTX 1060 3GB", "1060 3gb", "", 61, 3, kWhole, 192, 3.9, 3.9, kCard},
    {"GeForce GTX 1050 Ti", "1050 ti", "", 61, 4, kWhole, 112, 2.1, 2.1, kCard},
    {"GeForce GTX 1050", "1050", "", 61, 2, kWhole, 112, 1.9, 1.9, kCard},
    {"RTX PRO 6000 Blackwell", "pro 6000", "blackwell workstation server edition", 120, 96, kWhole,
     1792, 503.8, 0, kCard},
    {"RTX PRO 5000 Blackwell", "pro 5000", "blackwell", 120, 48, kWhole, 1344, 267.8, 0, kCard},
    {"RTX PRO 4500 Blackwell", "pro 4500", "blackwell", 120, 32, kWhole, 896, 202, 0, kCard},
    {"RTX PRO 4000 Blackwell", "pro 4000", "blackwell", 120, 24, kWhole, 672, 147.3, 0, kCard},
    {"RTX 6000 Ada Generation", "6000 ada", "generation", 89, 48, kWhole, 960, 364.2, 0, kCard},
    {"RTX 5000 Ada Generation", "5000 ada", "generation", 89, 32, kWhole, 576, 261.1, 0, kCard},
    {"RTX 4500 Ada Generation", "4500 ada", "generation", 89, 24, kWhole, 432, 158.5, 0, kCard},
    {"RTX 4000 Ada Generation", "4000 ada", "generation", 89, 20, kWhole, 360, 106.9, 0, kCard},
    {"RTX A6000", "a6000", "", 86, 48, kWhole, 768, 154.8, 0, kCard},
    {"RTX A5500", "a5500", "", 86, 24, kWhole, 768, 136.4, 0, kCard},
    {"RTX A5000", "a5000", "", 86, 24, kWhole, 768, 111.1, 0, kCard},
    {"RTX A4500", "a4500", "", 86, 20, kWhole, 640, 94.6, 0, kCard},
    {"RTX A4000", "a4000", "", 86, 16, kWhole, 448, 76.7, 0, kCard},
    {"RTX A2000 6GB", "a2000", "", 86, 6, kWhole, 288, 31.9, 0, kCard},
    {"RTX A2000 12GB", "a2000 12gb", "", 86, 12, kWhole, 288, 31.9, 0, kCard},
    {"RTX A1000", "a1000", "", 86, 8, kWhole, 192, 26.9, 0, kCard},
    {"RTX A400", "a400", "", 86, 4, kWhole, 96, 10.8, 0, kCard},
    {"Quadro RTX 8000", "quadro rtx 8000", "", 75, 48, kWhole, 672, 130.5, 0, kCard},
    {"Quadro RTX 6000", "quadro rtx 6000", "", 75, 24, kWhole, 672, 130.5, 0, kCard},
    {"Quadro RTX 5000", "quadro rtx 5000", "", 75, 16, kWhole, 448, 89.2, 0, kCard},
    {"Quadro RTX 4000", "quadro rtx 4000", "", 75, 8, kWhole, 416, 57, 0, kCard},
    {"Quadro GV100", "gv100", "", 70, 32, kWhole, 870, 118.5, 14.8, kCard},
    {"Quadro GP100", "gp100", "", 60, 16, kWhole, 732, 10.3, 10.3, kCard},
    {"Quadro P6000", "p6000", "", 61, 24, kWhole, 432, 12.6, 12.6, kCard},
    {"Quadro P5000", "p5000", "", 61, 16, kWhole, 288, 8.9, 8.9, kCard},
    {"Quadro P4000", "p4000", "", 61, 8, kWhole, 243, 5.3, 5.3, kCard},
    {"Quadro P2200", "p2200", "", 61, 5, kWhole, 200, 3.8, 3.8, kCard},
    {"Quadro P2000", "p2000", "", 61, 5, kWhole, 140, 3, 3, kCard},
    {"Quadro P1000", "p1000", "", 61, 4, kWhole, 80, 1.9, 1.9, kCard},
    {"Quadro P620", "p620", "", 61, 2, kWhole, 80, 1.4, 1.4, kCard},
    {"Quadro P600", "p600", "", 61, 2, kWhole, 64, 1.2, 1.2, kCard},
    {"Quadro P400", "p400", "", 61, 2, kWhole, 32, 0.64, 0.64, kCard},
}};

// Words that may be written together with the next word.
constexpr std::array<std::string_view, 8> kFamilies{"nvidia", "tesla", "geforce", "quadro",
                                                    "rtx",    "gtx",   "titan",   "super"};

std::string_view FamilyAtStart(std::string_view letters) {
  const auto* const family = std::ranges::find_if(
      kFamilies, [&](std::string_view each) { return letters.starts_with(each); });
  return family == kFamilies.end() ? std::string_view() : *family;
}

// Splits a name into runs of letters and of digits, in lower case: "GeForce GTX1080Ti" becomes
// geforce, gtx, 1080, ti. Separates families that are written together, and turns g and gib into
// gb.
std::vector<std::string> SplitWords(std::string_view name) {
  std::vector<std::string> words;
  std::string lower(name);
  absl::AsciiStrToLower(&lower);
  for (std::size_t at = 0; at < lower.size();) {
    std::size_t end = at + 1;
    if (absl::ascii_isalnum(lower[at])) {
      const bool is_digit = absl::ascii_isdigit(lower[at]);
      while (end < lower.size() && absl::ascii_isalnum(lower[end]) &&
             absl::ascii_isdigit(lower[end]) == is_digit) {
        ++end;
      }
      std::string_view run(lower.data() + at, end - at);
      for (std::string_view family = FamilyAtStart(run); !family.empty() && family != run;
           family = FamilyAtStart(run)) {
        words.emplace_back(family);
        run.remove_prefix(family.size());
      }
      words.emplace_back(run == "tisuper" ? "ti" : run == "g" || run == "gib" ? "gb" : run);
      if (run == "tisuper") words.emplace_back("super");
    } else if (!absl::ascii_isspace(lower[at]) &&
               std::string_view("-_()./").find(lower[at]) == std::string_view::npos) {
      words.emplace_back(1, lower[at]);
    }
    at = end;
  }
  return words;
}

// Removes the wanted words from `words`. False if one is missing.
bool TakeWords(const std::vector<std::string>& wanted, std::vector<std::string>& words) {
  return std::ranges::all_of(wanted, [&](const std::string& word) {
    const auto found = std::ranges::find(words, word);
    if (found == words.end()) return false;
    words.erase(found);
    return true;
  });
}

// Removes the card's memory, such as `80 gb`, from the words.
void TakeMemory(double memory_gib, std::vector<std::string>& words) {
  const std::string size = fmt::format("{}", memory_gib);
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == size && words[i + 1] == "gb") {
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                  words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
      return;
    }
  }
}

// Whether any card's name may contain the word.
bool IsOfAnyCard(std::string_view word) {
  constexpr std::array<std::string_view, 6> kAnyCard{"nvidia", "tesla", "geforce",
                                                     "quadro", "rtx",   "gtx"};
  return std::ranges::find(kAnyCard, word) != kAnyCard.end();
}

bool IsNamed(const KnownCard& card, std::vector<std::string> words) {
  if (!TakeWords(SplitWords(card.needs), words)) return false;
  TakeMemory(card.memory_gib, words);
  for (const std::string& word : SplitWords(card.allows)) {
    std::erase(words, word);
  }
  return std::ranges::all_of(words, IsOfAnyCard);
}

CardFacts MakeCardFacts(const KnownCard& card) {
  // A driver keeps some memory: it reports 79.18 of the 80 GiB of an H100 and 139.8 of the 141 GiB
  // of an H200 (docs/cards.md).
  constexpr double kReported = 0.985;
  const double ecc = card.ecc == Ecc::kTakesASixteenth ? 15.0 / 16 : 1.0;
  CardFacts facts;
  facts.name = std::string(card.name);
  facts.capability = card.capability;
  facts.memory_gib = card.memory_gib;
  facts.memory_bytes = static_cast<std::uint64_t>(card.memory_gib * 0x1p30 * ecc * kReported);
  facts.speed.capability = card.capability;
  facts.speed.limits = {card.gb_per_s * 1e9, card.tflops * 1e12 / 2, {}};
  facts.speed.scan_products_per_s =
      ScanProductsPerS(card.capability, facts.speed.limits.products_per_s, card.fp32_tflops * 5e11);
  facts.source = card.source == kCard ? "data sheet" : "white paper";
  return facts;
}

}  // namespace

std::optional<CardFacts> FindCardFacts(std::string_view name) {
  const std::vector<std::string> words = SplitWords(name);
  const auto* const found = std::ranges::find_if(
      kKnownCards, [&](const KnownCard& card) { return IsNamed(card, words); });
  if (found == kKnownCards.end()) return std::nullopt;
  return MakeCardFacts(*found);
}

std::vector<CardFacts> KnownCards() {
  std::vector<CardFacts> cards;
  for (const KnownCard& card : kKnownCards) cards.push_back(MakeCardFacts(card));
  return cards;
}

std::vector<std::string> ListStrategies(int capability) {
  if (capability == 0) return {};
  if (capability < backend::kGpuCodeMin) return {"no code: the CPU answers"};
  const unsigned scan_max = backend::GpuTuning().scan_queries_max;
  std::vector<std::string> phrases;
  phrases.push_back(
      fmt::format("up to {} queries: scan of {}", scan_max,
                  capability >= backend::kInt8ScanMin     ? "int8 rows, of fp16 rows without them"
                  : capability >= backend::kTensorScanMin ? "fp16 rows on tensor cores"
                                                          : "fp16 rows, multiplied in fp32"));
  phrases.push_back(
      fmt::format("more: cuBLAS{}, fp16 rows",
                  capability >= backend::kTensorProductsMin ? " on tensor cores" : " in fp32"));
  if (capability < backend::kInt8ScanMin) phrases.emplace_back("no int8 rows");
  if (capability < backend::kNewestPluginCodeMin) {
    phrases.emplace_back("code in the plug-in of CUDA 12 alone");
  }
  return phrases;
}

std::string CardsLike(std::string_view name) {
  constexpr std::size_t kOfferedMax = 4;
  std::vector<std::string> words = SplitWords(name);
  std::erase_if(words, IsOfAnyCard);
  std::vector<std::string> names;
  base::NearestSearch nearest(name);
  for (const KnownCard& card : kKnownCards) {
    std::vector<std::string> of_card = SplitWords(card.name);
    if (!words.empty() && TakeWords(words, of_card)) names.push_back(base::Quoted(card.name));
    nearest.Consider(card.name);
  }
  if (names.empty()) return base::DidYouMean(nearest.found());
  if (names.size() > kOfferedMax) names.resize(kOfferedMax);
  return fmt::format(" It may be {}.", fmt::join(names, " or "));
}

}  // namespace simile::cli

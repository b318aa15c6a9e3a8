#include "cli/plan/known_cards.h"

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <absl/strings/ascii.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/accelerator_kinds.h"
#include "files/document.h"

namespace simile::cli {
namespace {

using testing::HasSubstr;

std::string FindName(std::string_view given) {
  const auto facts = FindCardFacts(given);
  return facts ? facts->name : "none";
}

TEST(KnownCardsTest, KnowsCardsByTheDriversNames) {
  EXPECT_EQ(FindName("NVIDIA H200"), "H200");
  EXPECT_EQ(FindName("NVIDIA H100 80GB HBM3"), "H100 80GB HBM3");
  EXPECT_EQ(FindName("NVIDIA H100 PCIe"), "H100 PCIe");
  EXPECT_EQ(FindName("NVIDIA A100-SXM4-80GB"), "A100-SXM4-80GB");
  EXPECT_EQ(FindName("NVIDIA A100-PCIE-40GB"), "A100-PCIE-40GB");
  EXPECT_EQ(FindName("NVIDIA A100 80GB PCIe"), "A100 80GB PCIe");
  EXPECT_EQ(FindName("NVIDIA GH200 480GB"), "GH200 480GB");
  EXPECT_EQ(FindName("Tesla V100-SXM2-32GB"), "V100-SXM2-32GB");
  EXPECT_EQ(FindName("Tesla V100S-PCIE-32GB"), "V100S-PCIE-32GB");
  EXPECT_EQ(FindName("Tesla P100-PCIE-16GB"), "P100-PCIE-16GB");
  EXPECT_EQ(FindName("Tesla P4"), "P4");
  EXPECT_EQ(FindName("NVIDIA RTX A5000"), "RTX A5000");
  EXPECT_EQ(FindName("NVIDIA GeForce RTX 3080 Ti"), "GeForce RTX 3080 Ti");
  EXPECT_EQ(FindName("NVIDIA GeForce GTX 1060 3GB"), "GeForce GTX 1060 3GB");
  EXPECT_EQ(FindName("NVIDIA TITAN X (Pascal)"), "TITAN X (Pascal)");
  EXPECT_EQ(FindName("NVIDIA RTX 6000 Ada Generation"), "RTX 6000 Ada Generation");
  EXPECT_EQ(FindName("NVIDIA RTX PRO 6000 Blackwell Server Edition"), "RTX PRO 6000 Blackwell");
}

TEST(KnownCardsTest, KnowsTheNamesThatPeopleWrite) {
  for (const char* const name :
       {"p4", "Tesla P4", "NVIDIA Tesla P4", "nvidia-tesla-p4", "TESLA_P4"}) {
    EXPECT_EQ(FindName(name), "P4") << name;
  }
  for (const char* const name : {"A5000", "rtx a5000", "RTXA5000", "NVIDIA A5000", "a5000 24gb"}) {
    EXPECT_EQ(FindName(name), "RTX A5000") << name;
  }
  for (const char* const name : {"a100", "A100 40GB", "A100-SXM4", "NVIDIA A100 40 GB"}) {
    EXPECT_EQ(FindName(name), "A100-SXM4-40GB") << name;
  }
  for (const char* const name : {"4070tisuper", "RTX 4070 Ti Super", "GeForce RTX4070TI SUPER"}) {
    EXPECT_EQ(FindName(name), "GeForce RTX 4070 Ti SUPER") << name;
  }
  for (const char* const name :
       {"1080ti", "GTX1080Ti", "geforce gtx 1080 ti", "GeForceGTX1080Ti"}) {
    EXPECT_EQ(FindName(name), "GeForce GTX 1080 Ti") << name;
  }
  EXPECT_EQ(FindName("H100 SXM5"), "H100 80GB HBM3");
  EXPECT_EQ(FindName("A100 80g"), "A100-SXM4-80GB");
  EXPECT_EQ(FindName("p4000"), "Quadro P4000");
  EXPECT_EQ(FindName("Quadro RTX 6000"), "Quadro RTX 6000");
  EXPECT_EQ(FindName("3080 12gb"), "GeForce RTX 3080 12GB");
  EXPECT_EQ(FindName("titanxp"), "TITAN Xp");
}

// A name with a word that is not understood may be another card's.
TEST(KnownCardsTest, GuessesNothing) {
  for (const char* const name :
       {"", "NVIDIA", "RTX", "T5", "NVIDIA L400", "NVIDIA RTX A3000", "A100 64GB",
        "NVIDIA GeForce RTX 3080 Laptop GPU", "GeForce GTX 1080 with Max-Q Design",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A10-24Q", "GRID T4-16Q", "RTX 6000",
        "GeForce GTX TITAN X", "Quadro M4000", "P4 P4", "T4+"}) {
    EXPECT_EQ(FindName(name), "none") << name;
  }
}

TEST(KnownCardsTest, OffersTheCardsThatAreMeant) {
  EXPECT_EQ(CardsLike("Quadro 6000"),
            " It may be \"RTX PRO 6000 Blackwell\" or \"RTX 6000 Ada Generation\" or \"RTX A6000\" "
            "or \"Quadro RTX 6000\".");
  EXPECT_EQ(CardsLike("no such card"), "");
  EXPECT_EQ(CardsLike("Qadro P4000"), " Did you mean \"Quadro P4000\"?");
}

TEST(KnownCardsTest, KnowsEveryNameThatItLists) {
  std::set<std::string> names;
  for (const CardFacts& card : KnownCards()) {
    EXPECT_TRUE(names.insert(card.name).second) << card.name;
    for (const std::string& name :
         {card.name, "NVIDIA " + card.name, absl::AsciiStrToLower(card.name),
          absl::AsciiStrToUpper(card.name)}) {
      EXPECT_EQ(FindName(name), card.name) << name;
    }
    EXPECT_GT(card.speed.limits.products_per_s, card.speed.limits.bytes_per_s) << card.name;
    EXPECT_EQ(card.speed.scan_products_per_s < card.speed.limits.products_per_s,
              card.capability == 61 || card.capability == 70)
        << card.name;
    EXPECT_LT(static_cast<double>(card.memory_bytes), card.memory_gib * 0x1p30) << card.name;
    EXPECT_GT(static_cast<double>(card.memory_bytes), card.memory_gib * 0.92 * 0x1p30) << card.name;
  }
  EXPECT_GE(names.size(), 100U);
}

TEST(KnownCardsTest, TellsTheMemoryThatDriversReported) {
  const auto expect = [](const char* name, double reported) {
    EXPECT_NEAR(static_cast<double>(FindCardFacts(name)->memory_bytes), reported, 0.01 * reported);
  };
  expect("H100", 85'017'493'504);  // cudaMemGetInfo, 2026-11-28
  expect("H200", 150'109'880'320);
}

TEST(KnownCardsTest, KnowsComputeCapabilities) {
  const auto capability = [](const char* name) { return FindCardFacts(name)->capability; };
  EXPECT_EQ(capability("P100"), 60);
  EXPECT_EQ(capability("P4"), 61);
  EXPECT_EQ(capability("GTX 1080"), 61);
  EXPECT_EQ(capability("V100"), 70);
  EXPECT_EQ(capability("T4"), 75);
  EXPECT_EQ(capability("RTX 2080 Ti"), 75);
  EXPECT_EQ(capability("A100"), 80);
  EXPECT_EQ(capability("A5000"), 86);
  EXPECT_EQ(capability("RTX 4090"), 89);
  EXPECT_EQ(capability("L4"), 89);
  EXPECT_EQ(capability("H200"), 90);
  EXPECT_EQ(capability("B200"), 100);
  EXPECT_EQ(capability("RTX 5090"), 120);
}

// The lists of the builds are in cmake/SimileCuda.cmake; the least of each is what the constants
// say.
TEST(KnownCardsTest, KnowsWhichCodeIsBuilt) {
  const std::string cmake = TextOfSource("cmake/SimileCuda.cmake");
  std::vector<int> least;
  const std::regex lists("set\\(all ([0-9]+)-real");
  for (std::sregex_iterator list(cmake.begin(), cmake.end(), lists), end; list != end; ++list) {
    least.push_back(std::stoi((*list)[1]));
  }
  EXPECT_EQ(least, (std::vector{backend::kNewestPluginCodeMin, backend::kGpuCodeMin,
                                backend::kGpuCodeMin}));
  EXPECT_THAT(cmake,
              HasSubstr(fmt::format("set(SIMILE_CUDA_ARCHITECTURES {} ", backend::kGpuCodeMin)));
}

std::string FormatRow(const CardFacts& card) {
  const double gb_per_s = card.speed.limits.bytes_per_s / 1e9;
  const double tflops = card.speed.limits.products_per_s * 2 / 1e12;
  return fmt::format("| {} | {}.{} | {:g} GB | {:g} | {:g} | {} |", card.name, card.capability / 10,
                     card.capability % 10, card.memory_gib, gb_per_s, tflops, card.source);
}

TEST(KnownCardsTest, AreTheTableOfTheDocumentation) {
  std::vector<std::string> rows;
  for (const std::string& line : LinesOf(TextOfSource("docs/cards.md"))) {
    if (line.ends_with("data sheet |") || line.ends_with("white paper |")) rows.push_back(line);
  }
  std::vector<std::string> known;
  for (const CardFacts& card : KnownCards()) known.push_back(FormatRow(card));
  EXPECT_EQ(rows, known) << "docs/cards.md should have:\n"
                         << fmt::format("{}", fmt::join(known, "\n"));
}

TEST(KnownCardsTest, SaysWhatACapabilityRuns) {
  const std::string page = TextOfSource("docs/cards.md");
  for (const int capability : {60, 61, 70, 75, 80, 86, 89, 90, 100, 120}) {
    const std::string row =
        fmt::format("| sm_{} | {} |", capability, fmt::join(ListStrategies(capability), "; "));
    EXPECT_THAT(page, HasSubstr(row));
  }
  EXPECT_TRUE(ListStrategies(0).empty());
}

}  // namespace
}  // namespace simile::cli

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/tuning/tuning_cache.h"
#include "backend/registry.h"
#include "base/message_text.h"
#include "certificate/seeded_random.h"
#include "cli/live_server.h"
#include "cli/program_run.h"
#include "files/document.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const char* const kFilms = SIMILE_SOURCE_DIR "/examples/films";
// So that nothing is measured.
const char* const kBandwidth = "--host-bandwidth=20GB/s";

TEST(PlanCommandTest, PlansAFolderForACard) {
  const ProgramRun run =
      RunProgram({"plan", kFilms, "--device-memory", "16GiB", "--device-bandwidth", "300GB/s",
                  kBandwidth, "--host-memory", "8GiB", "--price-per-hour", "1.20"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, HasSubstr("films  5,000 vectors x 384 (cosine), 500 users\n"));
  EXPECT_THAT(run.printed,
              HasSubstr("  fits: 7.20 GiB may be taken\n  (nine tenths of the 8.00 GiB"));
  EXPECT_THAT(run.printed,
              HasSubstr("  fits: 16.00 GiB x 0.80 - 1.00 GiB reserved = 11.80 GiB may be taken\n"
                        "  (--device-memory)\n"));
  EXPECT_THAT(run.printed, HasSubstr("cost of 1M"));
}

TEST(PlanCommandTest, PlansInt8RowsForCardsThatMultiplyBytes) {
  const auto device = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"plan", kFilms, kBandwidth, "--device-memory", "16GiB", "--json"});
    const json said = json::parse(RunProgram(arguments).printed);
    return std::pair(said["collections"][0]["device"]["int8_rows"] > 0,
                     said["device"]["int8_assumed"] == true);
  };
  EXPECT_EQ(device({"--card", "T4"}), std::pair(false, false));
  EXPECT_EQ(device({"--card", "A10"}), std::pair(true, false));
  EXPECT_EQ(device({}), std::pair(true, true)) << "of a card without a name";
  const ProgramRun run = RunProgram({"plan", kFilms, kBandwidth, "--device-memory", "16GiB"});
  EXPECT_THAT(run.printed, HasSubstr("  int8 rows are assumed: a card before sm_80 keeps none"));
  EXPECT_EQ(device({"--device-bandwidth", "192GB/s", "--capability", "6.1"}),
            std::pair(false, false));
  EXPECT_EQ(device({"--device-bandwidth", "600GB/s", "--capability", "sm_86"}),
            std::pair(true, false));
}

TEST(PlanCommandTest, ANamedCardBringsItsMemory) {
  const ProgramRun run = RunProgram({"plan", kFilms, kBandwidth, "--card", "nvidia rtx a5000"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, HasSubstr("  fits: 23.64 GiB x 0.80"));
  EXPECT_THAT(run.printed, HasSubstr("  (RTX A5000, --card, 24 GB by its data sheet)\n"));
  EXPECT_THAT(run.printed, HasSubstr("  sm_86    up to 64 queries: scan of int8 rows"));
  const json given = json::parse(
      RunProgram({"plan", kFilms, kBandwidth, "--card", "P4", "--device-memory", "7GiB", "--json"})
          .printed);
  EXPECT_EQ(given["device"]["memory"], std::uint64_t{7} << 30);
  EXPECT_EQ(given["device"]["capability"], 61);
}

TEST(PlanCommandTest, SaysThatACardHasNoCode) {
  const ProgramRun run = RunProgram({"plan", kFilms, kBandwidth, "--card", "Tesla P100"});
  EXPECT_EQ(run.exit_code, 0) << run.errors << "the CPU answers";
  EXPECT_THAT(run.printed, HasSubstr("no card planned: P100-SXM2-16GB is sm_60, for which there is "
                                     "no code; the lowest is sm_61\n"));
  const ProgramRun old = RunProgram(
      {"plan", kFilms, kBandwidth, "--device-memory", "12GiB", "--capability", "5.2", "--json"});
  EXPECT_EQ(json::parse(old.printed)["device"], nullptr);
}

// The header of a matrix and a hole in place of its rows, which a plan does not read.
void WriteHeader(const std::filesystem::path& file, std::size_t rows, std::size_t dim) {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, dim);
  header.resize(117, ' ');
  header += '\n';
  std::ofstream(file, std::ios::binary)
      << std::string("\x93NUMPY\1\0", 8) << static_cast<char>(header.size()) << '\0' << header;
  std::filesystem::resize_file(file, 10 + header.size() + rows * dim * 4);
}

// Cards drawn from the table of docs/cards.md, whose columns are card, capability, memory, GB/s and
// TFLOPS; shapes at random; arithmetic as docs/sizing.md has it, by hand.
TEST(PlanCommandTest, PlansTwentyCardsAsArithmeticByHandDoes) {
  std::vector<std::array<std::string, 5>> table;
  for (const std::string& line : LinesOf(TextOfSource("docs/cards.md"))) {
    std::array<std::string, 5> cells;
    std::istringstream in(line);
    std::string cell;
    std::getline(in, cell, '|');
    for (std::string& each : cells) {
      std::getline(in, each, '|');
      each = each.substr(std::min<std::size_t>(1, each.size()));
    }
    if (line.ends_with("data sheet |") || line.ends_with("white paper |")) table.push_back(cells);
  }
  ASSERT_GT(table.size(), 100U);
  const char* const given_seed = std::getenv("TEST_SEED");
  const std::uint64_t seed =
      given_seed != nullptr ? std::strtoull(given_seed, nullptr, 10) : std::random_device()();
  tests::SeededRandom random(seed);
  double worst_bytes = 0, worst_seconds = 0;
  for (int i = 0; i < 20;) {
    const auto& [name, capability_text, memory, gb_per_s, tflops] =
        table[random.Below(table.size())];
    const double capability = std::stod(capability_text);
    if (capability < 6.1) continue;  // without code
    ++i;
    const std::size_t rows = random.Between(5'000, 40'000), dim = random.Between(1, 512);
    const ScratchFolder scratch;
    WriteHeader(scratch.path() / "content_vectors.npy", rows, dim);
    const ProgramRun run =
        RunProgram({"plan", scratch.path().string(), kBandwidth, "--host-memory", "64GiB", "--card",
                    name.substr(0, name.size() - 1), "--batch", "100", "--json"});
    const std::string what = fmt::format("seed {}: {} x {} on {}", seed, rows, dim, name);
    const json said = json::parse(run.printed, nullptr, false);
    ASSERT_FALSE(said.is_discarded()) << what << run.errors;
    const double padded = std::ceil(static_cast<double>(dim) / 32) * 32;
    const double int8 = std::ceil(padded / 64) * 64 + 8;
    const auto count = static_cast<double>(rows);
    const bool has_int8 = capability >= 8;
    // fp16 and fp32 rows, their numbers and 64 masks of a bit, perhaps int8 rows.
    const double bytes = count * (6 * padded + 4 + 8 + (has_int8 ? int8 : 0));
    const auto planned = said["collections"][0]["device"]["rest"].get<double>();
    worst_bytes = std::max(worst_bytes, std::abs(planned / bytes - 1));
    EXPECT_NEAR(planned, bytes, 0.1 * bytes) << what;
    EXPECT_NEAR(said["device"]["workspace"].get<double>(), 303.0 * 0x1p20, 0.1 * 303 * 0x1p20);
    const double card_bytes = std::stod(memory) * 0x1p30;
    EXPECT_NEAR(said["device"]["memory"].get<double>(), card_bytes, 0.1 * card_bytes) << what;
    // Two floors: one query reads, or multiplies for the 8 or 16 that an instruction takes; before
    // sm_75 in fp32. A hundred queries multiply, or read the fp16 rows.
    const double rate = std::stod(tflops) / 2 * 1e12, bandwidth = std::stod(gb_per_s) * 1e9;
    const double one_read = count * (has_int8 ? int8 : 2 * padded) / bandwidth;
    const double one_product = capability >= 7.5 ? count * padded * (has_int8 ? 8 : 16) / rate
                               : capability < 7  ? count * padded * 16 / (rate / 2)
                                                 : 0;  // a V100's fp32 rate is not in the table
    const double many = std::max(count * 2 * padded / bandwidth, count * padded * 100 / rate);
    for (const json& time : said["collections"][0]["times"]) {
      if (time["on"] != "gpu" || time["basis"] != "floor" || time["what"] == "one caller" ||
          time["what"] == "64 callers") {
        continue;
      }
      const double by_hand = time["batch"] == 1 ? std::max(one_read, one_product) : many;
      const auto seconds = time["seconds"].get<double>();
      if (capability == 7.0 && time["batch"] == 1) {
        EXPECT_GE(seconds, 0.999 * by_hand) << what;
        continue;
      }
      worst_seconds = std::max(worst_seconds, std::abs(seconds / by_hand - 1));
      EXPECT_NEAR(seconds, by_hand, 0.02 * by_hand) << what << ", batch " << time["batch"];
    }
  }
  fmt::print("20 cards: bytes off by at most {:.1f} %, floors by {:.1f} % (seed {})\n",
             100 * worst_bytes, 100 * worst_seconds, seed);
}

TEST(PlanCommandTest, MeasuresTheHostUnlessItIsTold) {
  const ProgramRun run = RunProgram({"plan", kFilms, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json said = json::parse(run.printed);
  EXPECT_GT(said["host"]["bandwidth"], 1e8);
  EXPECT_GT(said["host"]["products_per_s"], 1e8);
}

TEST(PlanCommandTest, EndsWithOneWhereItDoesNotFit) {
  const ProgramRun run =
      RunProgram({"plan", kFilms, kBandwidth, "--host-memory", "20MiB", "--json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(json::parse(run.printed)["fits"], false);
}

TEST(PlanCommandTest, TakesSettingsFromTheEnvironment) {
  const ProgramRun run =
      RunProgram({"plan", kFilms, kBandwidth, "--device-memory", "16GiB", "--json"}, "",
                 {"SIMILE_GPU_MEMORY_FRACTION=0.5"});
  const json said = json::parse(run.printed);
  EXPECT_EQ(said["device"]["available"], std::uint64_t{7} << 30);
}

TEST(PlanCommandTest, ObeysTheConfiguredMaximum) {
  const auto available = [](const std::string& host, const std::string& maximum) {
    const ProgramRun run = RunProgram(
        {"plan", kFilms, kBandwidth, "--host-memory", host, "--device-memory", "16GiB", "--json"},
        "", {"SIMILE_COLLECTIONS_MEMORY_BYTES_MAX=" + maximum});
    const json said = json::parse(run.printed)["host"];
    return said["available"].get<std::uint64_t>() - said["program"].get<std::uint64_t>() -
           said["pinned"].get<std::uint64_t>();
  };
  EXPECT_EQ(available("10GiB", "1000000000"), 1'000'000'000U) << "of collections alone";
  EXPECT_LT(available("1GiB", "1000000000"), 1'000'000'000U) << "the host has less";
}

TEST(PlanCommandTest, UsesTheThreadsThatTuneChose) {
  const ScratchFolder scratch;
  app::MeasuredTuning measured;
  measured.key = app::MakeTuningKey(backend::MakeCpuOptions(backend::RegistryOptions()).value());
  measured.date = "2026-11-21";
  const unsigned threads = std::max(1U, measured.key.threads - 1);
  measured.tuned = app::TunedFindings{"2026-11-23", {"films"}, threads, {}};
  const std::filesystem::path file = scratch.path() / "tuning.json";
  ASSERT_TRUE(app::WriteTuningCache(file, measured).ok());
  const ProgramRun run =
      RunProgram({"plan", kFilms}, "", {"SIMILE_BACKEND_TUNING_CACHE=" + file.string()});
  EXPECT_THAT(run.printed, HasSubstr("  (measured on " + base::Counted(threads, "thread")));
}

TEST(PlanCommandTest, SaysWhatWouldBeRight) {
  const ProgramRun nothing = RunProgram({"plan", kBandwidth});
  EXPECT_EQ(nothing.exit_code, 64);
  EXPECT_THAT(nothing.errors, HasSubstr("nothing to plan: name a folder"));
  EXPECT_THAT(RunProgram({"plan", "no-such-folder", kBandwidth}).errors,
              HasSubstr("no-such-folder"));
  const ProgramRun wrong = RunProgram({"plan", kFilms, "--device-memory", "16"});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.errors, HasSubstr("--device-memory: \"16\" is not a quantity"));
  const ProgramRun unknown = RunProgram({"plan", kFilms, "--card", "T5"});
  EXPECT_EQ(unknown.exit_code, 64);
  EXPECT_THAT(unknown.errors, HasSubstr("--card: \"T5\" is not in the table (docs/cards.md)."));
  EXPECT_THAT(RunProgram({"plan", kFilms, "--card", "RTX 6000"}).errors,
              HasSubstr("It may be \"RTX PRO 6000 Blackwell\" or \"RTX 6000 Ada Generation\""));
  const ProgramRun capability = RunProgram({"plan", kFilms, "--capability", "eight"});
  EXPECT_EQ(capability.exit_code, 64);
  EXPECT_THAT(capability.errors,
              HasSubstr("--capability: \"eight\" is not a compute capability, as in 8.6 or 86"));
  EXPECT_EQ(RunProgram({"plan", kFilms, "--server", "localhost:1"}).exit_code, 64);
  const ProgramRun batch = RunProgram({"plan", kFilms, "--batch", "65537"});
  EXPECT_EQ(batch.exit_code, 64);
  EXPECT_THAT(batch.errors,
              HasSubstr("--batch: \"65537\" is not a whole number of queries from 1 to 65536, "
                        "as limits.batch_queries_max is"));
  const ProgramRun hits =
      RunProgram({"plan", kFilms, "-k", "101"}, "", {"SIMILE_LIMITS_K_MAX=100"});
  EXPECT_EQ(hits.exit_code, 64);
  EXPECT_THAT(hits.errors, HasSubstr("-k: 101 is not a whole number from 1 to 100"));
  const ProgramRun price =
      RunProgram({"plan", "--server", "localhost:1", "--price-per-hour", "1.20"});
  EXPECT_EQ(price.exit_code, 64);
  EXPECT_THAT(price.errors, HasSubstr("give its --host-bandwidth"));
}

TEST(PlanCommandTest, PlansWhatAServerHasLoaded) {
  const LiveServer server;
  const ProgramRun run = RunProgram({"plan", "--server", server.address(), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json said = json::parse(run.printed);
  EXPECT_EQ(said["host"]["available"], nullptr) << "its machine may be another";
  const json loaded = said["collections"][0];
  EXPECT_EQ(loaded["loaded"], true);
  EXPECT_EQ(loaded["rows"], 5'000);
  const ProgramRun folder = RunProgram({"plan", kFilms, kBandwidth, "--json"});
  const json planned = json::parse(folder.printed)["collections"][0];
  EXPECT_EQ(planned["host"]["vectors"], loaded["host"]["vectors"]);
  EXPECT_EQ(planned["host"]["payload"], loaded["host"]["payload"]) << "a small file is read whole";
  EXPECT_EQ(planned["host"]["users"], loaded["host"]["users"]);
}

}  // namespace
}  // namespace simile::cli

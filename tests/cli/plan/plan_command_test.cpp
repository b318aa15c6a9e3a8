#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/tuning_cache.h"
#include "backend/registry.h"
#include "base/message_text.h"
#include "cli/live_server.h"
#include "cli/program_run.h"
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
  EXPECT_THAT(run.printed, HasSubstr("cost of 1M queries"));
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
  measured.key = app::KeyOf(backend::CpuOptionsOf(backend::RegistryOptions()).value());
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
  EXPECT_THAT(unknown.errors, HasSubstr("--card: \"T5\" is not in the table, which has H200"));
  EXPECT_EQ(RunProgram({"plan", kFilms, "--server", "localhost:1"}).exit_code, 64);
  const ProgramRun batch = RunProgram({"plan", kFilms, "--batch", "65537"});
  EXPECT_EQ(batch.exit_code, 64);
  EXPECT_THAT(batch.errors, HasSubstr("--batch: \"65537\" is not a whole number from 1 to 65536, "
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

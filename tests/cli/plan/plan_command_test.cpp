#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/live_server.h"
#include "cli/program_run.h"

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
  EXPECT_THAT(run.printed, HasSubstr("  fits 16.00 GiB x 0.80 - 1.00 GiB reserved = 11.80 GiB\n"));
  EXPECT_THAT(run.printed, HasSubstr("a million cost"));
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

TEST(PlanCommandTest, SaysWhatWouldBeRight) {
  const ProgramRun nothing = RunProgram({"plan", kBandwidth});
  EXPECT_EQ(nothing.exit_code, 64);
  EXPECT_THAT(nothing.errors, HasSubstr("nothing to plan: name a folder"));
  EXPECT_THAT(RunProgram({"plan", "no-such-folder", kBandwidth}).errors,
              HasSubstr("no-such-folder"));
  const ProgramRun wrong = RunProgram({"plan", kFilms, "--device-memory", "16"});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.errors, HasSubstr("--device-memory: \"16\" is not a quantity"));
  const ProgramRun unknown = RunProgram({"plan", kFilms, "--device", "T5"});
  EXPECT_EQ(unknown.exit_code, 64);
  EXPECT_THAT(unknown.errors, HasSubstr("--device: \"T5\" is not in the table, which has H200"));
  EXPECT_EQ(RunProgram({"plan", kFilms, "--server", "localhost:1"}).exit_code, 64);
}

TEST(PlanCommandTest, PlansWhatAServerHasLoaded) {
  const LiveServer server;
  const ProgramRun run = RunProgram({"plan", "--server", server.address(), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json loaded = json::parse(run.printed)["collections"][0];
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

#include "cli/config_command.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/config/foreign_variables.h"
#include "app/config/settings.h"
#include "backend/cpu/int8_tuning.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

app::ConfigReading ReadVariables(std::vector<std::pair<std::string, std::string>> environment) {
  app::ConfigSources sources;
  sources.environment = std::move(environment);
  absl::StatusOr<app::ConfigReading> reading = app::ReadConfig(sources);
  EXPECT_TRUE(reading.ok()) << reading.status();
  return *std::move(reading);
}

app::ConfigReading Reading() {
  app::ConfigSources sources;
  sources.environment = {{"SIMILE_SERVER_PORT", "0"}};
  sources.flags = {{"collections.serve", {"films=examples/films"}}};
  absl::StatusOr<app::ConfigReading> reading = app::ReadConfig(sources);
  EXPECT_TRUE(reading.ok()) << reading.status();
  return *std::move(reading);
}

app::TuningInForce Measured() {
  app::TuningInForce tuning;
  tuning.tuning.gather_share = 9;
  tuning.origins.assign(backend::cpu::TuningValues().size(), "default");
  tuning.origins[2] = "measured 2026-11-21 on Ann's processor";
  tuning.threads = 3;
  tuning.threads_origin = "tuned 2026-11-23 for films on Ann's processor";
  return tuning;
}

TEST(ConfigCommandTest, ShowsValueUnitOtherDefaultAndOrigin) {
  const std::string table = SettingsTable(Reading(), Terminal{});
  EXPECT_THAT(table, ContainsRegex("server\\.port +0 \\(default 50051\\) +SIMILE_SERVER_PORT\n"));
  EXPECT_THAT(table, ContainsRegex("collections\\.serve +films=examples/films +--collection\n"));
  EXPECT_THAT(table, ContainsRegex("limits\\.drain_timeout +5000 ms +default\n"));
}

std::size_t WidestLine(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

// What does not fit goes on in the next line: a path is worth nothing cut.
TEST(ConfigCommandTest, FitsEightyColumnsOnATerminalAndAHundredWithout) {
  const app::ConfigReading reading =
      ReadVariables({{"HOME", "/root"}, {"SIMILE_SERVER_PORT", "0"}, {"TF32_OVERRIDE", "0"}});
  app::TuningInForce tuning = Measured();
  tuning.origins[0] = "measured 2026-11-22 on AMD EPYC, 2 threads, avx512vnni";
  for (const auto& [terminal, width] :
       std::vector<std::pair<Terminal, std::size_t>>{{{}, 100}, {{true, false, 80}, 80}}) {
    EXPECT_LE(WidestLine(SettingsTable(reading, terminal)), width);
    EXPECT_LE(WidestLine(TuningTable(tuning, terminal)), width);
    EXPECT_LE(WidestLine(VariableTable(reading, terminal)), width);
  }
  EXPECT_THAT(SettingsTable(reading, {}), HasSubstr("/root/.local/state/simile/gpu-faults.json "));
}

TEST(ConfigCommandTest, ShowsTheTuningWithItsUnitsAndOrigins) {
  app::TuningInForce tuning = Measured();
  std::string table = TuningTable(tuning, Terminal{});
  EXPECT_THAT(table, ContainsRegex("threads +3 +tuned 2026-11-23 for films on Ann's processor\n"));
  EXPECT_THAT(table, ContainsRegex("large_batch_min +5 queries +default\n"));
  EXPECT_THAT(table, ContainsRegex("gather_share +9 rows for one +measured 2026-11-21 on Ann's "
                                   "processor\n"));
  tuning.tuning.large_batch_min = 65'536;
  tuning.tuning.scan_rows_max = 16'384;
  table = TuningTable(tuning, Terminal{});
  EXPECT_THAT(table, ContainsRegex("large_batch_min +never +default\n"));
  EXPECT_THAT(table, ContainsRegex("scan_rows_max +16,384 rows +default\n"));
  tuning.cache = absl::InvalidArgumentError("/t.json: not a tuning cache");
  table = TuningTable(tuning, Terminal{});
  EXPECT_THAT(table, EndsWith("\n/t.json: not a tuning cache\n"));
}

TEST(ConfigCommandTest, ShowsTheTuningInJson) {
  const json tuning = json::parse(SettingsJson(Reading(), Measured(), {}))["tuning"];
  ASSERT_EQ(tuning.size(), backend::cpu::TuningValues().size() + 1);
  EXPECT_EQ(tuning[0]["name"], "threads");
  EXPECT_EQ(tuning[0]["value"], 3);
  EXPECT_EQ(tuning[0]["origin"], "tuned 2026-11-23 for films on Ann's processor");
  EXPECT_EQ(tuning[3]["name"], "gather_share");
  EXPECT_EQ(tuning[3]["value"], 9);
  EXPECT_EQ(tuning[3]["unit"], "rows for one");
  EXPECT_EQ(tuning[3]["default"], 16);
  EXPECT_EQ(tuning[3]["origin"], "measured 2026-11-21 on Ann's processor");
}

TEST(ConfigCommandTest, ShowsEverySettingOnceInJson) {
  const json settings = json::parse(SettingsJson(Reading(), Measured(), {}))["settings"];
  ASSERT_EQ(settings.size(), app::Settings().size());
  for (const json& setting : settings) {
    if (setting["key"] == "server.port") {
      EXPECT_EQ(setting["value"], 0);
      EXPECT_EQ(setting["default"], 50'051);
      EXPECT_EQ(setting["environment"], "SIMILE_SERVER_PORT");
      EXPECT_EQ(setting["flag"], "--port");
    }
    if (setting["key"] == "metrics.enabled") {
      EXPECT_EQ(setting["value"], true);
    }
    if (setting["key"] == "collections.serve") {
      EXPECT_EQ(setting["value"], json({{"films", "examples/films"}}));
    }
  }
}

TEST(ConfigCommandTest, ShowsVariablesOfOtherProgramsAndWhatTheyDid) {
  EXPECT_EQ(VariableTable(ReadVariables({{"PATH", "/bin"}}), Terminal{}), "");
  const std::string table = VariableTable(ReadVariables({{"TF32_OVERRIDE", "0"},
                                                         {"CUDA_MODULE_LOADING", "EAGER"},
                                                         {"WORKER_API_KEY", "secret"},
                                                         {"INFERENCE_BATCH_SIZE", "64"}}),
                                          Terminal{});
  EXPECT_THAT(table, ContainsRegex("INFERENCE_BATCH_SIZE +64 +this server +limits\\."
                                   "batch_queries_max stays 1024\n"));
  EXPECT_THAT(table, ContainsRegex("CUDA_MODULE_LOADING +EAGER +the GPU's driver +LAZY "));
  EXPECT_THAT(table, ContainsRegex("TF32_OVERRIDE +0 +nobody: ignored +Scores are exact"));
  EXPECT_THAT(table, ContainsRegex("WORKER_API_KEY +\\(set\\) +nobody: ignored +The server has"));
}

TEST(ConfigCommandTest, ShowsForeignVariablesAndFamiliarNamesInJson) {
  const json all = json::parse(
      SettingsJson(ReadVariables({{"TF32_OVERRIDE", "0"}, {"WORKER_B", "2"}, {"WORKER_A", "1"}}),
                   Measured(), {}));
  std::vector<std::string> set;
  std::size_t row_count = 0;
  for (const json& variable : all["foreign_variables"]) {
    if (variable["value"].is_null()) {
      ++row_count;
    } else {
      set.push_back(variable["name"].get<std::string>() + "=" +
                    variable["value"].get<std::string>());
      EXPECT_EQ(variable["reader"], "") << variable;
    }
  }
  EXPECT_THAT(set, ElementsAre("TF32_OVERRIDE=0", "WORKER_A=(set)", "WORKER_B=(set)"));
  EXPECT_EQ(row_count + 1, app::ForeignVariables().size());
  ASSERT_EQ(all["familiar_names"].size(), app::FamiliarNames().size());
  EXPECT_EQ(all["familiar_names"][0]["name"], "USE_GPU");
  EXPECT_EQ(all["familiar_names"][0]["key"], "backend.preference");
}

TEST(ConfigCommandTest, ShowsProblemsInJson) {
  EXPECT_EQ(json::parse(SettingsJson(Reading(), Measured(), {}))["problems"], json::array());
  const json problems =
      json::parse(SettingsJson(Reading(), Measured(),
                               {{"collections.data_root", "flag --data-root",
                                 "/srv: the folder does not exist"}}))["problems"];
  EXPECT_EQ(problems, json({{{"key", "collections.data_root"},
                             {"origin", "flag --data-root"},
                             {"message", "/srv: the folder does not exist"}}}));
}

}  // namespace
}  // namespace simile::cli

#include "cli/config_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/settings.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::EndsWith;

app::ConfigReading Reading() {
  app::ConfigSources sources;
  sources.environment = {{"SIMILE_SERVER_PORT", "0"}};
  sources.flags = {{"collections.serve", {"films=examples/films"}}};
  absl::StatusOr<app::ConfigReading> reading = app::ReadConfig(sources);
  EXPECT_TRUE(reading.ok()) << reading.status();
  return *std::move(reading);
}

TEST(ConfigCommandTest, ShowsValueRangeDefaultAndOrigin) {
  const std::string table = SettingsTable(Reading(), Terminal{});
  EXPECT_THAT(table, ContainsRegex("server\\.port +0 +0 to 65535 +50051 +environment "
                                   "SIMILE_SERVER_PORT"));
  EXPECT_THAT(table,
              ContainsRegex("collections\\.serve +films=examples/films +NAME=FOLDER +- +flag "
                            "--collection"));
  EXPECT_THAT(table, ContainsRegex("limits\\.drain_timeout +5000 +ms +0 to 600000 +5000 +default"));
}

app::TuningInForce Measured() {
  app::TuningInForce tuning;
  tuning.tuning.gather_share = 9;
  tuning.origins = {"default", "default", "measured 2026-11-21 on Ann's processor", "default"};
  return tuning;
}

TEST(ConfigCommandTest, ShowsTheTuningWithItsUnitsAndOrigins) {
  app::TuningInForce tuning = Measured();
  std::string table = TuningTable(tuning, Terminal{});
  EXPECT_THAT(table, ContainsRegex("large_batch_min +5 +queries +5 +default\n"));
  EXPECT_THAT(table, ContainsRegex("gather_share +9 +rows for one +16 +measured 2026-11-21 on "
                                   "Ann's processor\n"));
  tuning.cache = absl::InvalidArgumentError("/t.json: not a tuning cache");
  table = TuningTable(tuning, Terminal{});
  EXPECT_THAT(table, EndsWith("\n/t.json: not a tuning cache\n"));
}

TEST(ConfigCommandTest, ShowsTheTuningInJson) {
  const json tuning = json::parse(SettingsJson(Reading(), Measured(), {}))["tuning"];
  ASSERT_EQ(tuning.size(), 4U);
  EXPECT_EQ(tuning[2]["name"], "gather_share");
  EXPECT_EQ(tuning[2]["value"], 9);
  EXPECT_EQ(tuning[2]["unit"], "rows for one");
  EXPECT_EQ(tuning[2]["default"], 16);
  EXPECT_EQ(tuning[2]["origin"], "measured 2026-11-21 on Ann's processor");
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

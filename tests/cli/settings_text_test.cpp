#include "cli/settings_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/settings.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::ContainsRegex;

app::ConfigReading Reading() {
  app::ConfigSources sources;
  sources.environment = {{"SIMILE_SERVER_PORT", "0"}};
  sources.flags = {{"collections.serve", {"films=examples/films"}}};
  absl::StatusOr<app::ConfigReading> reading = app::ReadConfig(sources);
  EXPECT_TRUE(reading.ok()) << reading.status();
  return *std::move(reading);
}

TEST(SettingsTextTest, ShowsValueRangeDefaultAndOrigin) {
  const std::string table = SettingsTable(Reading(), Terminal{});
  EXPECT_THAT(table, ContainsRegex("server\\.port +0 +0 to 65535 +50051 +environment "
                                   "SIMILE_SERVER_PORT"));
  EXPECT_THAT(table,
              ContainsRegex("collections\\.serve +films=examples/films +NAME=FOLDER +- +flag "
                            "--collection"));
  EXPECT_THAT(table, ContainsRegex("limits\\.drain_timeout +5000 +ms +0 to 600000 +5000 +default"));
}

TEST(SettingsTextTest, ShowsEverySettingOnceInJson) {
  const json settings = json::parse(SettingsJson(Reading()))["settings"];
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

}  // namespace
}  // namespace simile::cli

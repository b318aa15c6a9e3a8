#include "app/config/settings.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace simile::app {
namespace {

TEST(SettingsTest, NamesEachSettingOnceInEverySource) {
  std::set<std::string> names;
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(names.insert(setting.key).second) << setting.key;
    EXPECT_TRUE(names.insert(setting.Environment()).second) << setting.key;
    EXPECT_TRUE(setting.flag.empty() || names.insert(setting.flag).second) << setting.flag;
  }
}

TEST(SettingsTest, DescribesEachSetting) {
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(setting.help.ends_with('.')) << setting.key;
    EXPECT_FALSE(setting.range.empty()) << setting.key;
    EXPECT_EQ(setting.flag_value.empty(), setting.kind != SettingKind::kSwitch) << setting.key;
  }
}

// Every default is in its range, and set() accepts what get() returns.
TEST(SettingsTest, AcceptsItsOwnDefault) {
  for (const Setting& setting : Settings()) {
    const Config defaults;
    Config config;
    const absl::Status set = setting.set(setting.get(defaults), config);
    EXPECT_TRUE(set.ok()) << setting.key << ": " << set;
    EXPECT_EQ(setting.get(config), setting.get(defaults)) << setting.key;
  }
}

TEST(SettingsTest, RefusesNumbersBeyondBothEnds) {
  for (const Setting& setting : Settings()) {
    if (setting.kind != SettingKind::kWholeNumber) continue;
    const std::size_t to = setting.range.find(" to ");
    const std::uint64_t min = std::stoull(setting.range.substr(0, to));
    const std::uint64_t max = std::stoull(setting.range.substr(to + 4));
    Config config;
    EXPECT_TRUE(setting.set({std::to_string(min)}, config).ok()) << setting.key;
    EXPECT_EQ(setting.get(config).front(), std::to_string(min)) << setting.key;
    EXPECT_TRUE(setting.set({std::to_string(max)}, config).ok()) << setting.key;
    EXPECT_EQ(setting.get(config).front(), std::to_string(max)) << setting.key;
    EXPECT_FALSE(setting.set({std::to_string(max + 1)}, config).ok()) << setting.key;
    // There is no text for a whole number below zero.
    const bool taken_below = min > 0 && setting.set({std::to_string(min - 1)}, config).ok();
    EXPECT_FALSE(taken_below) << setting.key;
    for (const char* text : {"", "-1", "+5", "5 ", "0x5", "1e3", "99999999999999999999"}) {
      EXPECT_FALSE(setting.set({text}, config).ok()) << setting.key << " " << text;
    }
    // A refused value changes nothing.
    EXPECT_EQ(setting.get(config).front(), std::to_string(max)) << setting.key;
  }
}

TEST(SettingsTest, RefusesFractionsBeyondBothEnds) {
  int fractions = 0;
  for (const Setting& setting : Settings()) {
    if (setting.kind != SettingKind::kNumber) continue;
    ++fractions;
    const std::size_t to = setting.range.find(" to ");
    Config config;
    for (const std::string& end : {setting.range.substr(0, to), setting.range.substr(to + 4)}) {
      EXPECT_TRUE(setting.set({end}, config).ok()) << setting.key;
      EXPECT_EQ(setting.get(config).front(), end) << setting.key;
    }
    const std::string below = fmt::format("{}", std::stod(setting.range) - 0.01);
    const std::string above = fmt::format("{}", std::stod(setting.range.substr(to + 4)) + 0.01);
    for (const std::string text :
         {"", "-1", "+0.5", "0.5 ", "nan", "inf", "1e400", below.c_str(), above.c_str()}) {
      EXPECT_FALSE(setting.set({text}, config).ok()) << setting.key << " " << text;
    }
  }
  EXPECT_EQ(fractions, 2);
}

TEST(SettingsTest, RenamesSettingsToKnownOnes) {
  const auto is_key = [](std::string_view key) {
    return std::ranges::find(Settings(), key, &Setting::key) != Settings().end();
  };
  for (const RenamedSetting& renamed : RenamedSettings()) {
    EXPECT_FALSE(is_key(renamed.old_key)) << renamed.old_key;
    EXPECT_TRUE(is_key(renamed.key)) << renamed.key;
  }
}

TEST(SettingsTest, MapsFamiliarNamesToKnownSettings) {
  for (const FamiliarName& familiar : FamiliarNames()) {
    EXPECT_TRUE(std::ranges::any_of(Settings(), [&](const Setting& setting) {
      return setting.key == familiar.key;
    })) << familiar.name;
  }
}

}  // namespace
}  // namespace simile::app

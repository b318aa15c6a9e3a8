#include "observe/log.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::observe {
namespace {

using ::testing::MatchesRegex;

TEST(LoggerTest, WritesTextLinesWithTimeAndLevel) {
  std::ostringstream out;
  const Logger log({.format = LogFormat::kText, .level = LogLevel::kInfo, .sink = &out});
  log.Warn("request failed", {{"code", "NOT_FOUND"}});
  EXPECT_THAT(out.str(), MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]+Z warning request failed "
                                      "code=NOT_FOUND\n"));
}

TEST(LoggerTest, WritesOneJsonObjectOnEachLine) {
  std::ostringstream out;
  const Logger log({.format = LogFormat::kJson, .level = LogLevel::kInfo, .sink = &out});
  log.Error("a \"quoted\"\nthing %v", {{"rows", 5000U}});
  EXPECT_THAT(out.str(),
              MatchesRegex("\\{\"time\":\"[0-9-]+T[0-9:]+\\.[0-9]+Z\",\"level\":\"error\","
                           "\"message\":\"a \\\\\"quoted\\\\\"\\\\nthing %v\",\"rows\":5000\\}\n"));
}

TEST(LoggerTest, DropsLinesBelowItsLevel) {
  std::ostringstream out;
  const Logger log({.format = LogFormat::kText, .level = LogLevel::kWarning, .sink = &out});
  log.Debug("one");
  log.Info("two");
  EXPECT_EQ(out.str(), "");
  log.Warn("three");
  log.Error("four");
  EXPECT_THAT(out.str(), MatchesRegex("[^\n]* warning three\n[^\n]* error four\n"));
}

}  // namespace
}  // namespace simile::observe

#include "observe/log.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.h"
#include "base/terminal_pair.h"

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

TEST(LoggerTest, ErasesAProgressBarOnATerminal) {
  const base::TerminalPair terminal;
  if (!terminal.exists()) GTEST_SKIP() << base::TerminalPair::kMissing;
  const base::FileDescriptor errors(dup(STDERR_FILENO));
  ASSERT_EQ(dup2(terminal.program(), STDERR_FILENO), STDERR_FILENO);
  ASSERT_TRUE(base::WriteAll(STDERR_FILENO, "films |##--| 22 %"));
  const Logger log(Logger::Options{});
  log.Info("ready");
  EXPECT_TRUE(log.Flush(std::chrono::minutes(1)));
  ASSERT_EQ(dup2(errors.get(), STDERR_FILENO), STDERR_FILENO);
  std::string text;
  while (!text.ends_with('\n')) {
    std::array<char, 256> bytes;
    const ssize_t count = read(terminal.person(), bytes.data(), bytes.size());
    ASSERT_GT(count, 0);
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  EXPECT_THAT(text, MatchesRegex("films [^\r]*%\r\x1b\\[K[0-9-]+T[^\r]* info ready\r\n"));
}

}  // namespace
}  // namespace simile::observe

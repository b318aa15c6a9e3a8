#include "observe/log.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
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

std::string FormatTextLine(std::string_view message, std::initializer_list<LogField> fields) {
  return observe::FormatTextLine(message, {fields.begin(), fields.size()});
}
std::string FormatJsonMembers(std::string_view message, std::initializer_list<LogField> fields) {
  return observe::FormatJsonMembers(message, {fields.begin(), fields.size()});
}

TEST(FormatTextLineTest, WritesPlainFieldsWithoutQuotes) {
  EXPECT_EQ(FormatTextLine("request failed", {{"request_id", "4f1c"}, {"duration_us", 812U}}),
            "request failed request_id=4f1c duration_us=812");
}

TEST(FormatTextLineTest, QuotesAmbiguousValues) {
  EXPECT_EQ(FormatTextLine("x", {{"a", "two words"}, {"b", ""}, {"c", "k=v"}, {"d", "say \"hi\""}}),
            R"(x a="two words" b="" c="k=v" d="say \"hi\"")");
}

TEST(FormatTextLineTest, EscapesLineBreaksAndControlCharacters) {
  const std::string line = FormatTextLine("got\nmail", {{"id", "a\nfake warning line\x1b[31m"}});
  EXPECT_EQ(line, R"(got\nmail id="a\nfake warning line\u001b[31m")");
}

TEST(FormatTextLineTest, KeepsOtherScriptsUnescaped) {
  EXPECT_EQ(FormatTextLine("x", {{"title", "Бременские"}}), "x title=Бременские");
}

TEST(FormatTextLineTest, WritesEveryKindOfValue) {
  EXPECT_EQ(FormatTextLine("x", {{"flag", true}, {"below", -3}, {"ratio", 0.5}, {"big", ~0ULL}}),
            "x flag=true below=-3 ratio=0.5 big=18446744073709551615");
}

TEST(FormatJsonMembersTest, WritesMessageAndFields) {
  EXPECT_EQ(FormatJsonMembers("request failed", {{"rpc", "Search"}, {"us", 8}, {"ok", false}}),
            R"("message":"request failed","rpc":"Search","us":8,"ok":false)");
}

TEST(FormatJsonMembersTest, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(FormatJsonMembers("a\"b\\c\n\x01", {}), R"("message":"a\"b\\c\n\u0001")");
}

TEST(FormatJsonMembersTest, ReplacesBytesThatAreNotUtf8) {
  // A lone continuation byte, an overlong '/', a surrogate and a truncated sequence: each bad byte
  // becomes one U+FFFD.
  EXPECT_EQ(FormatJsonMembers("\x80|\xC0\xAF|\xED\xA0\x80|\xE2\x82", {}),
            "\"message\":\"\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD"
            "\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(FormatJsonMembers("\xF0\x9F\x8E\xAC", {}), "\"message\":\"\xF0\x9F\x8E\xAC\"");
}

TEST(FormatJsonMembersTest, WritesNonFiniteNumbersAsNull) {
  EXPECT_EQ(FormatJsonMembers("x", {{"a", std::numeric_limits<double>::quiet_NaN()},
                                    {"b", -std::numeric_limits<double>::infinity()}}),
            R"("message":"x","a":null,"b":null)");
}

}  // namespace
}  // namespace simile::observe

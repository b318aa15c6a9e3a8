#include "observe/log_line.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace simile::observe {
namespace {

std::string TextLine(std::string_view message, std::initializer_list<LogField> fields) {
  return observe::TextLine(message, {fields.begin(), fields.size()});
}
std::string JsonMembers(std::string_view message, std::initializer_list<LogField> fields) {
  return observe::JsonMembers(message, {fields.begin(), fields.size()});
}

TEST(TextLineTest, WritesPlainFieldsWithoutQuotes) {
  EXPECT_EQ(TextLine("request failed", {{"request_id", "4f1c"}, {"duration_us", 812U}}),
            "request failed request_id=4f1c duration_us=812");
}

TEST(TextLineTest, QuotesAmbiguousValues) {
  EXPECT_EQ(TextLine("x", {{"a", "two words"}, {"b", ""}, {"c", "k=v"}, {"d", "say \"hi\""}}),
            R"(x a="two words" b="" c="k=v" d="say \"hi\"")");
}

TEST(TextLineTest, EscapesLineBreaksAndControlCharacters) {
  const std::string line = TextLine("got\nmail", {{"id", "a\nfake warning line\x1b[31m"}});
  EXPECT_EQ(line, R"(got\nmail id="a\nfake warning line\u001b[31m")");
}

TEST(TextLineTest, KeepsOtherScriptsUnescaped) {
  EXPECT_EQ(TextLine("x", {{"title", "Бременские"}}), "x title=Бременские");
}

TEST(TextLineTest, WritesEveryKindOfValue) {
  EXPECT_EQ(TextLine("x", {{"flag", true}, {"below", -3}, {"ratio", 0.5}, {"big", ~0ULL}}),
            "x flag=true below=-3 ratio=0.5 big=18446744073709551615");
}

TEST(JsonMembersTest, WritesMessageAndFields) {
  EXPECT_EQ(JsonMembers("request failed", {{"rpc", "Search"}, {"us", 8}, {"ok", false}}),
            R"("message":"request failed","rpc":"Search","us":8,"ok":false)");
}

TEST(JsonMembersTest, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(JsonMembers("a\"b\\c\n\x01", {}), R"("message":"a\"b\\c\n\u0001")");
}

TEST(JsonMembersTest, ReplacesBytesThatAreNotUtf8) {
  // A lone continuation byte, an overlong '/', a surrogate and a truncated sequence: each bad byte
  // becomes one U+FFFD.
  EXPECT_EQ(JsonMembers("\x80|\xC0\xAF|\xED\xA0\x80|\xE2\x82", {}),
            "\"message\":\"\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD"
            "\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(JsonMembers("\xF0\x9F\x8E\xAC", {}), "\"message\":\"\xF0\x9F\x8E\xAC\"");
}

TEST(JsonMembersTest, WritesNonFiniteNumbersAsNull) {
  EXPECT_EQ(JsonMembers("x", {{"a", std::numeric_limits<double>::quiet_NaN()},
                              {"b", -std::numeric_limits<double>::infinity()}}),
            R"("message":"x","a":null,"b":null)");
}

}  // namespace
}  // namespace simile::observe

#include "app/access_values.h"

#include <chrono>
#include <string>
#include <string_view>

#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/access/access_policy.h"

namespace simile::app {
namespace {

using ::testing::HasSubstr;

std::string HexOf(std::string_view token) {
  const service::TokenHash hash = service::HashToken(token);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(hash.data()), hash.size()));
}

template <class Value>
std::string RefusalOf(const absl::StatusOr<Value>& value) {
  return std::string(value.status().message());
}

TEST(AccessValuesTest, TakesTheHashOfAToken) {
  for (int i = 0; i < 10'000; ++i) {
    const std::string token = "token " + std::to_string(i);
    const auto hash = ReadTokenHash(HexOf(token));
    ASSERT_TRUE(hash.ok()) << token << hash.status();
    EXPECT_EQ(*hash, service::HashToken(token));
  }
}

TEST(AccessValuesTest, RefusesWhatCanBeNoHash) {
  const std::string patterns[] = {
      std::string(64, '0'), std::string(64, 'f'), std::string(63, '0') + "7",
      "0123456789abcdef0123456789abcdef0123456789ABCDEF0123456789ABCDEF",
      // That of another, shorter hash, written twice.
      "098f6bcd4621d373cade4e832627b4f6098f6bcd4621d373cade4e832627b4f6"};
  for (const std::string& text : patterns) {
    EXPECT_THAT(RefusalOf(ReadTokenHash(text)), HasSubstr("has a pattern, which no token's hash"))
        << text;
  }
  for (const std::string& text : {std::string(), std::string(63, '1'), HexOf("a") + " ",
                                  HexOf("a") + "\n", "0x" + HexOf("a")}) {
    EXPECT_THAT(RefusalOf(ReadTokenHash(text)), HasSubstr("not 64 hexadecimal digits")) << text;
  }
}

TEST(AccessValuesTest, RefusesTheHashOfNothing) {
  EXPECT_EQ(
      RefusalOf(ReadTokenHash("E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855")),
      "the hash of an empty text: there was no token when it was made; `printf %s TOKEN | "
      "sha256sum`, or `simile token` with the token itself");
  for (const char* const text : {"\n", "\r\n", " ", "TOKEN", "TOKEN\n", "$TOKEN", "$TOKEN\n"}) {
    EXPECT_THAT(RefusalOf(ReadTokenHash(HexOf(text))), HasSubstr("there was no token")) << text;
  }
}

TEST(AccessValuesTest, ReadsTimesThatExistAndThatTheClockCanTell) {
  const auto unix_time = [](std::string_view text) {
    return std::chrono::system_clock::to_time_t(ReadExpiry(text).value());
  };
  EXPECT_EQ(unix_time("2027-05-31"), 1'811'721'600);
  EXPECT_EQ(unix_time("2027-05-31T12:00:00Z"), 1'811'764'800);
  EXPECT_EQ(unix_time("2028-02-29T01:00:00+01:00"), 1'835'395'200);
  EXPECT_EQ(unix_time("2262-04-11"), 9'223'286'400);
  for (const char* const text :
       {"2027-02-30", "2027-02-29", "2027-13-01", "2027-00-10", "2027-04-31T12:00:00Z",
        "2027-05-31T25:00:00Z", "2027-05-31 ", "2027-05-31\n", "31.05.2027", "2027-5-31", "never",
        "2027-05-31T12:00:00", "2027-05-31 12:00:00", ""}) {
    EXPECT_THAT(RefusalOf(ReadExpiry(text)), HasSubstr("is not a time as")) << text;
  }
  for (const char* const text : {"9999-12-31", "2262-04-12", "1969-12-31", "0001-01-01"}) {
    EXPECT_THAT(RefusalOf(ReadExpiry(text)),
                HasSubstr("is not between 1970 and 2262; leave it out"))
        << text;
  }
}

TEST(AccessValuesTest, TakesNamesThatLookLikeWhatTheyAre) {
  for (const char* const name : {"ranker", "shop de", "spiffe://example.org/x", "Caf\u00e9", "7"}) {
    EXPECT_TRUE(CheckPrincipalName(name).ok()) << name;
  }
  for (const char* const name : {" ranker", "ranker ", "rank\ter", "ranker\n", "rank\u00a0er",
                                 "ranker\u200b", "\ufeffranker", "", "rank\u0085er"}) {
    EXPECT_FALSE(CheckPrincipalName(name).ok()) << name;
  }
  EXPECT_TRUE(CheckPrincipalName(std::string(128, 'x')).ok());
  EXPECT_THAT(std::string(CheckPrincipalName(std::string(129, 'x')).message()),
              HasSubstr("has 129 bytes; give 1 to 128"));
}

}  // namespace
}  // namespace simile::app

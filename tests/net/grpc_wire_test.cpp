#include "net/grpc_wire.h"

#include <chrono>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace simile::net {
namespace {

using namespace std::chrono_literals;

TEST(PercentEncodeTest, EscapesWhatAHeaderCannotCarry) {
  EXPECT_EQ(PercentEncode("no such film"), "no such film");
  EXPECT_EQ(PercentEncode(""), "");
  EXPECT_EQ(PercentEncode("100%"), "100%25");
  EXPECT_EQ(PercentEncode("a\r\n\tb\x7f"), "a%0D%0A%09b%7F");
  EXPECT_EQ(PercentEncode("\xc3\xa4"), "%C3%A4");
  EXPECT_EQ(PercentEncode(" a b "), "%20a b%20");
  EXPECT_EQ(PercentEncode(" "), "%20");
  EXPECT_EQ(PercentEncode(std::string(1, '\0')), "%00");
}

TEST(PercentEncodeTest, CutsALongTextBetweenTwoCharacters) {
  std::string text;
  for (int i = 0; i < 3'000; ++i) text += "\xe2\x82\xac";  // a euro sign is nine bytes then
  const std::string encoded = PercentEncode(text);
  EXPECT_LE(encoded.size(), kStatusMessageBytesMax);
  EXPECT_EQ(encoded.size() % 9, 0U);
  EXPECT_GT(encoded.size(), kStatusMessageBytesMax - 9);
  EXPECT_EQ(PercentEncode(std::string(kStatusMessageBytesMax, 'x')).size(), kStatusMessageBytesMax);
  EXPECT_EQ(PercentEncode(std::string(kStatusMessageBytesMax + 1, 'x')).size(),
            kStatusMessageBytesMax);
}

TEST(EncodeBinaryValueTest, CarriesAllBytesWithoutPadding) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (std::size_t size = 0; size <= all.size(); ++size) {
    const std::string text = EncodeBinaryValue(all.substr(0, size));
    EXPECT_EQ(text.find('='), std::string::npos);
    EXPECT_EQ(DecodeBinaryValue(text), all.substr(0, size));
    EXPECT_EQ(DecodeBinaryValue(text + std::string((4 - text.size() % 4) % 4, '=')),
              all.substr(0, size));
  }
  for (const char* text : {"!", "a", "a b=", "ab.=", "====", "YQ==YQ=="}) {
    EXPECT_EQ(DecodeBinaryValue(text), std::nullopt) << text;
  }
}

TEST(ParseTimeoutTest, ReadsAllUnits) {
  EXPECT_EQ(ParseTimeout("1H"), 1h);
  EXPECT_EQ(ParseTimeout("2M"), 2min);
  EXPECT_EQ(ParseTimeout("3S"), 3s);
  EXPECT_EQ(ParseTimeout("250m"), 250ms);
  EXPECT_EQ(ParseTimeout("7u"), 7us);
  EXPECT_EQ(ParseTimeout("99999999n"), 99'999'999ns);
  EXPECT_EQ(ParseTimeout("0S"), 0s);
  EXPECT_EQ(ParseTimeout("99999999H"), 24h);
}

TEST(ParseTimeoutTest, RefusesOtherTexts) {
  for (const char* text :
       {"", "S", "1", "1s", "123456789S", "-1S", "+1S", " 1S", "1 S", "1.5S", "1SS", "m1"}) {
    EXPECT_EQ(ParseTimeout(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace simile::net

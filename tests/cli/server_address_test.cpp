#include "cli/server_address.h"

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

TEST(ServerAddressTest, TakesHostAndPortOrHostAlone) {
  EXPECT_EQ(*ParseServerAddress("127.0.0.1:9000"), "127.0.0.1:9000");
  EXPECT_EQ(*ParseServerAddress("search-1.example.org:1"), "search-1.example.org:1");
  EXPECT_EQ(*ParseServerAddress("[::1]:65535"), "[::1]:65535");
  EXPECT_EQ(*ParseServerAddress("localhost"), "localhost:50051");
  EXPECT_EQ(*ParseServerAddress("[::1]"), "[::1]:50051");
  EXPECT_EQ(*ParseServerAddress(":50052"), "127.0.0.1:50052");
}

TEST(ServerAddressTest, SaysWhatIsTooMuch) {
  const auto error = [](const char* text) {
    return std::string(ParseServerAddress(text).status().message());
  };
  EXPECT_EQ(error("http://127.0.0.1:50051"), "give HOST:PORT, without \"http://\"");
  EXPECT_EQ(error("https://search/"), "give HOST:PORT, without \"https://\"");
  EXPECT_EQ(error("grpc://search:50051"), "give HOST:PORT, without \"grpc://\"");
  EXPECT_EQ(error("dns:///search:50051"), "give HOST:PORT, without \"dns://\"");
  EXPECT_EQ(error("search:50051/v1"), "give HOST:PORT, without \"/v1\"");
}

TEST(ServerAddressTest, SaysWhatIsMissingOrWrong) {
  const std::string wanted = "give HOST:PORT, such as 127.0.0.1:50051";
  const auto error = [](const char* text) {
    return std::string(ParseServerAddress(text).status().message());
  };
  for (const char* text : {"", "50051", "/run/socket", "[]:50051", "[::1", "[::1]50051",
                           "a b:50051", "user@search:50051", "localhost "}) {
    EXPECT_EQ(error(text), wanted) << text;
  }
  EXPECT_EQ(error("localhost:"), "the port is missing; " + wanted);
  EXPECT_EQ(error(":"), "the port is missing; " + wanted);
  for (const char* port : {"0", "65536", "99999", "-1", "grpc", "50051x", " 50051"}) {
    const std::string text = std::string("localhost:").append(port);
    EXPECT_EQ(error(text.c_str()),
              std::string("\"").append(port).append("\" is no port; give 1 to 65535"));
  }
  for (const char* text : {"::1", "::1:50051", "fe80::1", "localhost:1:2"}) {
    EXPECT_EQ(error(text), "an IPv6 address needs brackets: give [ADDRESS]:PORT") << text;
  }
}

}  // namespace
}  // namespace simile::cli

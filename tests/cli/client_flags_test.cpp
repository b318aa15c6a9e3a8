#include "cli/client_flags.h"

#include <gtest/gtest.h>

#include "cli/answer.h"
#include "cli/film_answer.h"

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

TEST(NextCommandTest, RepeatsTheServerAndTheCollectionThatWereNamed) {
  ClientFlags client;
  EXPECT_EQ(NextCommand("fetch --id heat-1995", client, {}), "simile fetch --id heat-1995");
  client.server = "host:7";
  EXPECT_EQ(NextCommand("fetch --id heat-1995", client, "films"),
            "simile fetch --id heat-1995 --collection films --server host:7");
  client.server = "[::1]:7";  // a pattern of file names to a shell
  EXPECT_EQ(NextCommand("list", client, {}), "simile list --server \"[::1]:7\"");
}

TEST(NextCommandTest, ReplacesControlCharactersFromAServer) {
  EXPECT_EQ(NextCommand("fetch --id \x1b[2J", {}, {}), "simile fetch --id \uFFFD[2J");
}

TEST(SuggestionAfterTest, OffersMoreHitsElseTheBestOne) {
  Answer answer = FilmAnswer();
  QueryFlags flags;
  EXPECT_EQ(SuggestionAfter(answer, flags), "simile fetch --id toy-story-2-1999");
  answer.results.front().hits[0].set_id("-k, 2");
  EXPECT_EQ(SuggestionAfter(answer, flags), "simile fetch --id='-k\\, 2'");
  flags.k = 2;
  flags.offset = 4;
  EXPECT_EQ(SuggestionAfter(answer, flags), "--offset 6 shows the next ones");
  answer.next_page_token = "token";
  EXPECT_EQ(SuggestionAfter(answer, flags), "");
}

TEST(SuggestionAfterTest, OffersNoHitsThatAServerRefuses) {
  const Answer answer = FilmAnswer();
  const std::string fetch = "simile fetch --id toy-story-2-1999";
  QueryFlags flags;
  flags.k = 2;
  flags.offset = 9'996;
  EXPECT_EQ(SuggestionAfter(answer, flags), "--offset 9998 shows the next ones");
  flags.offset = 9'997;
  EXPECT_EQ(SuggestionAfter(answer, flags), fetch);
  flags.offset = 4'294'967'295;
  EXPECT_EQ(SuggestionAfter(answer, flags), fetch);
  flags.offset.reset();
  flags.group_size = 2'501;
  EXPECT_EQ(SuggestionAfter(answer, flags), fetch);
  flags.group_size.reset();
  flags.diversity = 0.5;
  EXPECT_EQ(SuggestionAfter(answer, flags), fetch);
  flags.diversity.reset();
  flags.page_token = "of the last page";
  EXPECT_EQ(SuggestionAfter(answer, flags), fetch);
}

TEST(SuggestionAfterTest, OffersTheFieldsWhereNoRowsPassTheFilter) {
  Answer answer = FilmAnswer();
  answer.results.front().hits.Clear();
  EXPECT_EQ(SuggestionAfter(answer, {}), "");
  answer.results.front().rows_passing = 0;
  EXPECT_EQ(SuggestionAfter(answer, {}), "simile fields");
}

}  // namespace
}  // namespace simile::cli

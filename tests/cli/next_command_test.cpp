#include "cli/next_command.h"

#include <gtest/gtest.h>

#include "cli/answer.h"
#include "cli/film_answer.h"

namespace simile::cli {
namespace {

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

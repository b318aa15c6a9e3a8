// The client commands as a shell runs them, against a real server of the films.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/live_server.h"
#include "cli/program_run.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ClientCommandsTest : public testing::Test {
 protected:
  ProgramRun Run(const std::vector<std::string>& arguments, const std::string& input = "") {
    return server_.Run(arguments, input);
  }

  // The JSON that a command prints. The command must succeed.
  json RunJson(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.emplace_back("--json");
    const ProgramRun run = Run(arguments, input);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    return json::parse(run.printed, nullptr, false);
  }

 private:
  LiveServer server_;
};

TEST_F(ClientCommandsTest, SimilarShowsTheOtherToyStoriesFirst) {
  const ProgramRun run = Run({"similar", "--title", "Toy Story", "-k", "5"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed,
              StartsWith("in films, like Toy Story (1995), toy-story-1995\n"
                         "  1  0.7029  toy-story-2-1999    Toy Story 2    1999  Animated, Comedy, "
                         "Family\n"
                         "  2  0.6979  toy-story-4-2019    Toy Story 4    2019  Animated, Comedy, "
                         "Drama\n"
                         "  3  0.6709  toy-story-3-2010    Toy Story 3    2010  Animated, Comedy, "
                         "Drama\n"
                         "  4  0.6164  the-toy-1982        The Toy        1982  Comedy\n"
                         "  5  0.6125  a-goofy-movie-1995  A Goofy Movie  1995  Animated, "
                         "Adventure, Comedy, Musical\n"
                         "exact · cpu · "));
  EXPECT_EQ(run.errors, "");
}

TEST_F(ClientCommandsTest, SimilarListsTheCandidatesOfAnAmbiguousTitle) {
  const ProgramRun run = Run({"similar", "--title", "batman"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.printed, StartsWith("16 items of films match \"batman\"; name one with --id:\n"
                                      "  batman-1943 "));
  const ProgramRun as_json = Run({"similar", "--title", "batman", "--json"});
  EXPECT_EQ(as_json.exit_code, 1);
  EXPECT_EQ(json::parse(as_json.printed)["candidates"].size(), 16U);
}

TEST_F(ClientCommandsTest, SimilarSuggestsAWayOnAfterAnUnknownTitleOrId) {
  const ProgramRun title = Run({"similar", "--title", "no such film"});
  EXPECT_EQ(title.exit_code, 1);
  EXPECT_EQ(title.errors,
            "error: no title in films contains \"no such film\". Try fewer words, or name an item "
            "with --id.\n");
  const ProgramRun id = Run({"similar", "--id", "toy-story-1996"});
  EXPECT_EQ(id.exit_code, 1);
  EXPECT_THAT(id.errors, HasSubstr("Did you mean \"toy-story-1995\"?"));
  EXPECT_EQ(Run({"similar", "--id", "nope"}).errors,
            "error: no item \"nope\" in films. --title TEXT finds an item by its title.\n");
  EXPECT_EQ(
      Run({"similar", "--title", "Toy Storry"}).errors,
      "error: no title in films contains \"Toy Storry\". Did you mean \"toy story\"? Try fewer "
      "words, or name an item with --id.\n");
}

TEST_F(ClientCommandsTest, SimilarTakesAnIdOrATitleAsArgument) {
  const ProgramRun by_id = Run({"similar", "films", "heat-1995", "-k", "1"});
  EXPECT_EQ(by_id.exit_code, 0) << by_id.errors;
  EXPECT_THAT(by_id.printed, StartsWith("in films, like Heat (1995)\n"));
  // The collection is left out, where there is one.
  EXPECT_THAT(Run({"similar", "heat-1995", "-k", "1"}).printed,
              StartsWith("in films, like Heat (1995)\n"));
  EXPECT_THAT(Run({"similar", "--collection", "films", "heat-1995", "-k", "1"}).printed,
              StartsWith("in films, like Heat (1995)\n"));
  EXPECT_THAT(Run({"similar", "films", "Toy Story", "-k", "1"}).printed,
              StartsWith("in films, like Toy Story (1995), toy-story-1995\n"));
  EXPECT_THAT(Run({"similar", "batman"}).printed,
              StartsWith("16 items of films match \"batman\"; name one with --id:\n"));
  EXPECT_EQ(
      Run({"similar", "films", "heat-1996"}).errors,
      "error: no item \"heat-1996\" in films. Did you mean \"heat-1995\"? --title TEXT finds an "
      "item by its title.\n");
  const ProgramRun alone = Run({"similar", "films"});
  EXPECT_EQ(alone.exit_code, 64);
  EXPECT_THAT(alone.errors,
              StartsWith("error: \"films\" alone names the collection; say what to "));
}

TEST_F(ClientCommandsTest, FieldsListsTheValuesOfOne) {
  const ProgramRun run = Run({"fields", "films", "genres", "--values", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed,
              StartsWith("genres: list of keywords, in 5,000 rows, 41 different values\n"
                         "  value    rows\n"
                         "  Drama   1,741\n"));
  EXPECT_THAT(run.printed, testing::EndsWith("\n  and 39 more; --values shows more\n"));
  EXPECT_THAT(Run({"fields", "genres"}).printed, HasSubstr("\n  Western "));
  EXPECT_EQ(RunJson({"fields", "films", "genres"})["fields"].size(), 1U);
  EXPECT_EQ(Run({"fields", "films", "genre"}).errors,
            "error: films has no field \"genre\". Did you mean \"genres\"? Fields: cast, genres, "
            "media_id, title, year.\n");
}

TEST_F(ClientCommandsTest, OffersTheValueThatAFilterMayMean) {
  const ProgramRun run = Run({"similar", "heat-1995", "-k", "1", "--filter", "genres:\"Westen\""});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed,
              HasSubstr("  note: no row has genres \"Westen\"; did you mean \"Western\"?\n"));
}

TEST_F(ClientCommandsTest, SearchTakesNumbers) {
  std::string numbers = "1";
  for (int i = 1; i < 384; ++i) numbers += ",-0.5";
  EXPECT_THAT(Run({"search", "--vector", numbers, "-k", "1"}).printed,
              StartsWith("in films, nearest to the vector\n"));
  const ProgramRun two = Run({"search", "--vector", "0.1,0.2"});
  EXPECT_EQ(two.exit_code, 64);
  EXPECT_THAT(two.errors, StartsWith("error: the vector holds 2 dimensions, films has 384."));
}

TEST_F(ClientCommandsTest, SimilarAnswersSeveralIdsInJson) {
  const json answer =
      RunJson({"similar", "--id", "toy-story-1995,batman-1989", "-k", "2", "--fields", "year"});
  EXPECT_EQ(answer["collection"], "films");
  ASSERT_EQ(answer["results"].size(), 2U);
  EXPECT_EQ(answer["results"][1]["query"], json({{"id", "batman-1989"}}));
  const json& hit = answer["results"][0]["hits"][0];
  EXPECT_EQ(hit["rank"], 1);
  EXPECT_FALSE(hit.contains("row"));
  EXPECT_EQ(hit["id"], "toy-story-2-1999");
  EXPECT_EQ(hit["payload"], json({{"year", 1999}}));
  EXPECT_EQ(answer["results"][0]["score_kind"], "cosine");
  EXPECT_EQ(answer["receipt"]["exact"], true);
  EXPECT_EQ(answer["receipt"]["backend"], "cpu");
  EXPECT_EQ(answer["receipt"]["snapshot_id"].get<std::string>().size(), 32U);
  EXPECT_EQ(answer["receipt"]["rows_scanned"], 10'000);
}

TEST_F(ClientCommandsTest, SaysThatATextWithoutQuotesNamesTheCollection) {
  const struct {
    std::vector<std::string> arguments;
    std::string meant;
  } cases[] = {
      {{"similar", "--title", "Toy", "Story"}, "--title \"Toy Story\""},
      {{"similar", "--id", "heat-1995", "alien-1979"}, "--id heat-1995,alien-1979"},
      {{"recommend", "-k", "2", "--user", "user_00042", "user_00007"},
       "--user user_00042,user_00007"},
      {{"fetch", "--id", "heat-1995", "alien-1979"}, "--id heat-1995,alien-1979"},
      {{"similar", "--id", "heat-1995", "--fields", "title,year", "genres"},
       "--fields title,year,genres"},
      {{"similar", "--id", "heat-1995", "--filter", "year >=", "1990"},
       "--filter \"year >= 1990\""},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.meant);
    const ProgramRun run = Run(each.arguments);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_THAT(run.errors, HasSubstr("The text alone names the collection. Did you mean " +
                                      each.meant + "?\n"));
  }
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"similar", "flims", "--id", "heat-1995"},
        std::vector<std::string>{"similar", "-k", "3", "flims", "--id", "heat-1995"},
        std::vector<std::string>{"similar", "--id", "heat-1995", "films", "--items-of", "flims"}}) {
    EXPECT_THAT(Run(arguments).errors,
                AllOf(HasSubstr("no collection"), Not(HasSubstr("text alone"))));
  }
}

TEST_F(ClientCommandsTest, ComparesWithItemsOfAnotherCollection) {
  ASSERT_EQ(Run({"load", "books", "films"}).exit_code, 0);
  // Nothing is left out: the item is not one of the collection that is searched.
  const std::vector<std::string> by_id = {"similar", "films", "--id",       "heat-1995",
                                          "-k",      "1",     "--items-of", "books"};
  EXPECT_THAT(Run(by_id).printed, StartsWith("in films, like Heat (1995) of books\n"
                                             "  1  1.0000  heat-1995  Heat  1995"));
  const json answer = RunJson(by_id);
  EXPECT_EQ(answer["results"][0]["query"], json({{"id", "heat-1995"}, {"items_of", "books"}}));
  EXPECT_EQ(answer["receipt"]["item_snapshots"],
            json::array({{{"collection", "books"},
                          {"snapshot_id", answer["receipt"]["snapshot_id"]},
                          {"snapshot_version", 1}}}));
  EXPECT_THAT(
      Run({"similar", "films", "--title", "Toy Story", "-k", "1", "--items-of", "books"}).printed,
      StartsWith("in films, like Toy Story (1995), toy-story-1995 of books\n"
                 "  1  1.0000  toy-story-1995"));
  EXPECT_THAT(Run({"similar", "films", "--like", "heat-1995", "-k", "1", "--items-of", "books",
                   "--receipt"})
                  .printed,
              AllOf(StartsWith("in films, like heat-1995 of books\n  1  1.0000  heat-1995"),
                    HasSubstr("item_snapshots            books 1 (")));
  EXPECT_THAT(Run({"recommend", "films", "--user", "user_00042", "--like", "heat-1995",
                   "--user-weight", "0", "-k", "1", "--items-of", "books"})
                  .printed,
              StartsWith("for user_00042, like heat-1995 of books\n  1  1.0000  heat-1995"));
  EXPECT_THAT(Run({"similar", "films", "--id", "heat-1995", "--items-of", "book"}).errors,
              HasSubstr("Did you mean \"books\"?"));
  EXPECT_EQ(Run({"recommend", "films", "--user", "user_00042", "--items-of", "books"}).errors,
            "error: --items-of needs --like ID\n");
  EXPECT_EQ(Run({"search", "films", "--vector", "1,2", "--items-of", "books"}).errors,
            "error: --items-of needs --like or --unlike\n");
}

TEST_F(ClientCommandsTest, RecommendLeavesOutSeenItems) {
  const ProgramRun run = Run({"recommend", "--user", "user_00042", "-k", "1", "--exclude-seen"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, StartsWith("for user_00042 (5 seen, left out)\n"
                                      "  1  0.6570  the-shooting-1967  The Shooting  1967  "
                                      "Western\n"));
  const json answer = RunJson({"recommend", "--user", "user_00001,user_00002", "-k", "3"});
  EXPECT_EQ(answer["results"].size(), 2U);
  EXPECT_EQ(answer["results"][0]["query"]["user_id"], "user_00001");
}

TEST_F(ClientCommandsTest, RecommendNamesTheNearestUser) {
  const ProgramRun run = Run({"recommend", "--user", "user_42"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(
      run.errors,
      "error: no user \"user_42\" in films. Did you mean \"user_00042\"? --cold-start newest, "
      "or most-popular, answers users without a profile.\n");
}

TEST_F(ClientCommandsTest, SearchFindsTheRowsNearestToAVector) {
  std::string vector = "[1";
  for (int i = 1; i < 384; ++i) vector += ",0";
  const json answer = RunJson({"search", "--vector", "-", "-k", "3"}, vector + "]");
  EXPECT_EQ(answer["results"][0]["query"], json({{"vector", "standard input"}, {"row", 0}}));
  EXPECT_EQ(answer["results"][0]["hits"].size(), 3U);
}

TEST_F(ClientCommandsTest, SearchRefusesAVectorOfAnotherModel) {
  const ProgramRun run = Run({"search", "--vector", "-"}, "[1, 2, 3]");
  EXPECT_EQ(run.exit_code, 64);
  EXPECT_EQ(run.errors,
            "error: standard input holds 3 dimensions, films has 384. A vector from another model "
            "cannot be compared.\n");
  std::string column;  // [384, 1]
  for (int i = 0; i < 384; ++i) column += i == 0 ? "[[1]" : ", [1]";
  EXPECT_EQ(Run({"search", "--vector", "-"}, column + "]").errors,
            "error: standard input has the shape (384, 1); one vector has (384,) or (1, 384)\n");
}

TEST_F(ClientCommandsTest, SimilarShowsRowsOnRequest) {
  const json answer = RunJson({"similar", "--id", "toy-story-1995", "-k", "1", "--with-rows"});
  EXPECT_EQ(answer["results"][0]["hits"][0]["row"], 3'349);
  EXPECT_THAT(Run({"similar", "--id", "toy-story-1995", "-k", "1", "--with-rows"}).printed,
              HasSubstr("   1  0.7029  toy-story-2-1999  3,349  Toy Story 2  1999"));
}

TEST_F(ClientCommandsTest, BulkWorkHasTheAnswersOfOnlineWork) {
  std::vector<std::string> arguments = {"similar", "--id", "toy-story-1995", "-k", "3"};
  const json online = RunJson(arguments);
  arguments.emplace_back("--bulk");
  EXPECT_EQ(RunJson(arguments)["results"], online["results"]);
}

TEST_F(ClientCommandsTest, ARequiredFilterHidesRowsFromEveryPartOfACall) {
  const std::string westerns = "genres = Western";
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--required-filter", westerns, "-k", "5", "--json"});
    return Run(arguments);
  };
  const auto count = [&](const ProgramRun& answer) {
    const json hits = json::parse(answer.printed)["results"][0]["hits"];
    for (const json& hit : hits) {
      EXPECT_THAT(hit["payload"]["genres"], testing::Contains("Western"));
    }
    return hits.size();
  };
  EXPECT_EQ(count(run({"recommend", "--user", "user_00042"})), 5U);
  EXPECT_EQ(count(run({"recommend", "--user", "user_00042", "--filter", "year >= 1960"})), 5U);
  EXPECT_EQ(run({"similar", "--id", "toy-story-1995"}).exit_code, 1);
  EXPECT_EQ(run({"similar", "--like", "toy-story-1995"}).exit_code, 1);
  EXPECT_THAT(run({"similar", "--title", "Toy Story 2"}).errors,
              HasSubstr("no title in films contains \"Toy Story 2\""));
}

TEST_F(ClientCommandsTest, SearchesOnlyTheExpectedSnapshot) {
  const std::string served = RunJson({"list", "films"})["snapshot_id"];
  for (const std::string& id : {served, served.substr(0, 8)}) {
    EXPECT_EQ(Run({"similar", "--id", "heat-1995", "--expect-snapshot", id}).exit_code, 0) << id;
    EXPECT_EQ(Run({"recommend", "--user", "user_00042", "--expect-snapshot", id}).exit_code, 0);
  }
  const std::string other(32, '0');
  const ProgramRun run =
      Run({"similar", "--id", "heat-1995", "--expect-snapshot", other, "--json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(json::parse(run.printed)["error"]["reason"], "SNAPSHOT_MISMATCH");
  EXPECT_THAT(Run({"similar", "--id", "heat-1995", "--expect-snapshot", "00000000"}).errors,
              StartsWith("error: films serves snapshot " + served.substr(0, 8)));
}

TEST_F(ClientCommandsTest, ErrorsInJsonCarryTheServersDetails) {
  const ProgramRun run = Run({"recommend", "--user", "user_42", "--json"});
  EXPECT_EQ(run.exit_code, 1);
  const json error = json::parse(run.printed)["error"];
  EXPECT_EQ(error["code"], "NOT_FOUND");
  EXPECT_EQ(error["reason"], "USER_NOT_FOUND");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("user_42"));
  EXPECT_THAT(run.errors, StartsWith("error: no user \"user_42\" in films"));
  const ProgramRun filter =
      Run({"similar", "--id", "heat-1995", "--filter", "genre:Drama", "--json"});
  EXPECT_EQ(json::parse(filter.printed)["error"]["reason"], "INVALID_FILTER");
}

TEST_F(ClientCommandsTest, InfoShowsWhatTheServerIs) {
  const ProgramRun run = Run({"info"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, StartsWith("simile 0."));
  EXPECT_THAT(run.printed, HasSubstr("\n  changes  allowed\n"));
  EXPECT_THAT(Run({"info", "--limits"}).printed, HasSubstr("\nreply_bytes_max "));
  EXPECT_EQ(RunJson({"info"})["changes_allowed"], true);
}

TEST_F(ClientCommandsTest, LookupListsWhatATitleMayMean) {
  const ProgramRun run = Run({"lookup", "BATMAN", "--limit", "3"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, StartsWith("16 items of films match \"BATMAN\", 3 exactly:\n"
                                      "  batman-1943  Batman  1943  "));
  EXPECT_THAT(run.printed, testing::EndsWith("\n  and 13 more; --limit shows more\n"));
  const json found = RunJson({"lookup", "toy story", "--with-rows", "--fields", "year"});
  EXPECT_EQ(found["whole_match_count"], 1);
  EXPECT_EQ(found["matches"][0]["match"], "whole");
  EXPECT_EQ(found["matches"][0]["id"], "toy-story-1995");
  EXPECT_EQ(found["matches"][0]["payload"], json({{"year", 1995}}));
  EXPECT_TRUE(found["matches"][0].contains("row"));
  EXPECT_EQ(Run({"lookup", "no such film"}).printed, "no item of films matches \"no such film\"\n");
  EXPECT_EQ(Run({"lookup", "Toy Storry"}).printed,
            "no item of films matches \"Toy Storry\"\ndid you mean \"toy story\"?\n");
  EXPECT_THAT(Run({"lookup", "heat", "--field", "genres"}).errors,
              HasSubstr("films cannot be searched by \"genres\""));
}

TEST_F(ClientCommandsTest, FetchShowsItemsWithAllTheyHave) {
  const ProgramRun run = Run({"fetch", "--id", "heat-1995,toy-story-1995"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, StartsWith("heat-1995\n  cast    Al Pacino, "));
  EXPECT_THAT(run.printed, HasSubstr("\ntoy-story-1995\n"));
  EXPECT_THAT(run.printed, HasSubstr("\n  year    1995\n"));
  const json fetched =
      RunJson({"fetch", "--id", "heat-1995", "--with-vectors", "--fields", "year"});
  EXPECT_EQ(fetched["items"][0]["vector"].size(), 384U);
  EXPECT_EQ(fetched["items"][0]["payload"], json({{"year", 1995}}));
  EXPECT_FALSE(fetched["items"][0].contains("row"));
  EXPECT_EQ(fetched["snapshot_id"].get<std::string>().size(), 32U);
  const ProgramRun hidden =
      Run({"fetch", "--id", "heat-1995", "--required-filter", "genres = Western", "--json"});
  EXPECT_EQ(hidden.exit_code, 1);
  EXPECT_EQ(json::parse(hidden.printed)["error"]["reason"], "ITEM_NOT_FOUND");
  EXPECT_EQ(Run({"fetch"}).exit_code, 64);
}

TEST_F(ClientCommandsTest, HealthDistinguishesServerAndCollection) {
  EXPECT_EQ(Run({"health"}).printed, "serving\n");
  EXPECT_EQ(Run({"health", "--collection", "films"}).exit_code, 0);
  const ProgramRun unknown = Run({"health", "--collection", "songs", "--json"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(json::parse(unknown.printed)["status"], "UNKNOWN");
  EXPECT_EQ(json::parse(unknown.printed)["error"]["reason"], "COLLECTION_NOT_FOUND");
  EXPECT_EQ(std::ranges::count(unknown.printed, '\n'), 1);
  EXPECT_EQ(Run({"health", "--liveness"}).printed, "alive\n");
  EXPECT_EQ(RunJson({"health", "--liveness"})["status"], "SERVING");
  EXPECT_EQ(Run({"health", "--liveness", "--collection", "films"}).exit_code, 64);
}

TEST_F(ClientCommandsTest, ListShowsACollectionInDetail) {
  const ProgramRun run = Run({"list", "films"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, HasSubstr("5,000 of 384 dimensions, cosine"));
  EXPECT_THAT(run.printed, HasSubstr("year      integer           5,000"));
  EXPECT_THAT(run.printed, HasSubstr("note: preference_vectors.npy"));
  EXPECT_THAT(run.printed, HasSubstr("\n  content_vectors.npy       3.7 MiB  vectors\n"));
  EXPECT_THAT(run.printed, HasSubstr("\n  user_ids.json "));
  EXPECT_THAT(run.printed, HasSubstr("\n  README.md "));
  EXPECT_THAT(run.printed, HasSubstr("  not read: "));
  const json films = RunJson({"list", "films"});
  EXPECT_EQ(films["files"][0]["role"], "vectors");
  EXPECT_EQ(films["files"].size(), 5U + films["unread_files"].get<std::size_t>());
  EXPECT_EQ(films["skipped_rows"], 0);
}

TEST_F(ClientCommandsTest, SimilarCombinesLikedAndUnlikedFilms) {
  const ProgramRun run =
      Run({"similar", "--title", "Toy Story", "--unlike", "toy-story-2-1999", "-k", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed,
              StartsWith("in films, like Toy Story (1995), toy-story-1995, unlike "
                         "toy-story-2-1999\n  1  0.5394  a-goofy-movie-1995  A Goofy "));
  const json answer = RunJson({"similar", "--like", "heat-1995,alien-1979", "--unlike",
                               "toy-story-1995", "--strategy", "sum-scores", "-k", "3"});
  EXPECT_EQ(answer["results"][0]["query"],
            json({{"like", {"heat-1995", "alien-1979"}}, {"unlike", {"toy-story-1995"}}}));
  EXPECT_EQ(answer["results"][0]["hits"].size(), 3U);
  EXPECT_THAT(
      Run({"similar", "--unlike", "heat-1995", "-k", "1"}).printed,
      StartsWith("in films, unlike heat-1995 (scores are of best_score, -1 to 1)\n  1  -0."));
}

TEST_F(ClientCommandsTest, SimilarShowsGroupsByTheirKeyword) {
  const ProgramRun run = Run(
      {"similar", "--title", "Toy Story", "--group-by", "genres", "--group-size", "2", "-k", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed,
              StartsWith("in films, like Toy Story (1995), toy-story-1995\n"
                         "  1  Animated  0.7029  toy-story-2-1999  Toy Story 2  1999  Animated, "
                         "Comedy, Family\n"
                         "               0.6979  toy-story-4-2019  Toy Story 4  2019  Animated, "
                         "Comedy, Drama\n"
                         "  2  Comedy    0.7029  toy-story-2-1999  Toy Story 2  1999  Animated, "
                         "Comedy, Family\n"
                         "               0.6979  toy-story-4-2019  Toy Story 4  2019  Animated, "
                         "Comedy, Drama\n"
                         "  note: --group-by: 16 of 4,999 rows that can be returned have no genres "
                         "and are in no group\n"
                         "exact · cpu · "));
  const json answer =
      RunJson({"similar", "--title", "Toy Story", "--group-by", "genres", "-k", "3"});
  EXPECT_EQ(answer["results"][0]["groups"].size(), 3U);
  EXPECT_EQ(answer["results"][0]["groups"][0]["keyword"], "Animated");
  EXPECT_EQ(answer["results"][0]["groups"][0]["hits"][0]["id"], "toy-story-2-1999");
}

TEST_F(ClientCommandsTest, SimilarTurnsPages) {
  const std::vector<std::string> first = {"similar", "--title", "Toy Story", "-k", "2", "--paged"};
  const ProgramRun page = Run(first);
  const std::string label = "next page: ";
  ASSERT_THAT(page.printed, HasSubstr(label));
  std::string token = page.printed.substr(page.printed.find(label) + label.size());
  token.pop_back();  // the line's end
  std::vector<std::string> second = first;
  second.insert(second.end(), {"--page-token", token});
  EXPECT_THAT(Run(second).printed,
              StartsWith("in films, like Toy Story (1995), toy-story-1995\n  3  0.6709  "
                         "toy-story-3-2010  Toy Story 3"));
  second[4].replace(0, 1, 1, '3');
  EXPECT_THAT(Run(second).errors, HasSubstr("it belongs to another request"));
}

TEST_F(ClientCommandsTest, RecommendServesUsersWithoutProfilesAndBlends) {
  const ProgramRun unknown = Run({"recommend", "--user", "nobody"});
  EXPECT_EQ(unknown.exit_code, 1);
  const ProgramRun newest =
      Run({"recommend", "--user", "nobody", "-k", "2", "--cold-start", "newest"});
  EXPECT_EQ(newest.exit_code, 0) << newest.errors;
  EXPECT_THAT(newest.printed,
              StartsWith("for nobody, who has no profile: newest by year\n  1  plane-2023  "));
  const json popular =
      RunJson({"recommend", "--user", "nobody", "-k", "2", "--cold-start", "most-popular"});
  EXPECT_EQ(popular["results"][0]["cold_start"],
            json({{"order", "most_popular"}, {"field", nullptr}}));
  EXPECT_THAT(Run({"recommend", "--user", "user_00042", "--like", "heat-1995", "-k", "1"}).printed,
              StartsWith("for user_00042, like heat-1995\n  1  0.59"));
}

TEST_F(ClientCommandsTest, NamesOfTwoWordsAreJoinedEitherWay) {
  for (const std::string name : {"best-score", "best_score"}) {
    const json answer =
        RunJson({"similar", "--like", "heat-1995,alien-1979", "--strategy", name, "-k", "1"});
    EXPECT_EQ(answer["results"][0]["score_kind"], "best_score") << name;
  }
  for (const std::string name : {"most-popular", "most_popular"}) {
    const json answer = RunJson({"recommend", "--user", "nobody", "-k", "1", "--cold-start", name});
    EXPECT_EQ(answer["results"][0]["cold_start"]["order"], "most_popular") << name;
  }
}

TEST_F(ClientCommandsTest, SimilarSaysWhyThereAreNoHits) {
  const auto reason = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"similar", "--id", "heat-1995", "-k", "3"});
    const ProgramRun run = Run(flags);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.printed, StartsWith("in films, like Heat (1995)\n  no hits\n"));
    const std::size_t begin = run.printed.find("  note: ");
    return run.printed.substr(begin, run.printed.find('\n', begin) - begin);
  };
  EXPECT_EQ(reason({"--score-threshold", "0.99"}),
            "  note: 0 hits, not 3: no row scores 0.99 or more, 1 excluded row aside");
  EXPECT_EQ(reason({"--score-threshold", "2", "--filter", "genres:Western"}),
            "  note: 0 hits, not 3: no row scores 2 or more; such scores are at most 1");
  EXPECT_EQ(reason({"--score-threshold", "2", "--filter", "year > 3000"}),
            "  note: 0 hits, not 3: no row passes the filter");
  EXPECT_EQ(reason({"--offset", "9000"}),
            "  note: 0 hits, not 3: offset 9,000 skips every row that can be returned");
}

TEST_F(ClientCommandsTest, PartialAnswersWhatCanBeAnswered) {
  const ProgramRun run = Run({"recommend", "--user", "user_00042,nobody", "-k", "1", "--partial"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, StartsWith("for user_00042 (5 seen)\n  1  0.6810  "));
  EXPECT_THAT(run.printed, HasSubstr("\nfor nobody\n  error: no user \"nobody\" in films"));
  const json similar = RunJson({"similar", "--id", "nope,heat-1995", "-k", "1", "--partial"});
  EXPECT_EQ(similar["failed_count"], 1);
  EXPECT_EQ(similar["results"][0]["query"]["id"], "nope");
  EXPECT_EQ(similar["results"][0]["error"]["reason"], "ITEM_NOT_FOUND");
  EXPECT_EQ(similar["results"][0]["error"]["field"], "queries[0].id");
  EXPECT_FALSE(similar["results"][0].contains("hits"));
  EXPECT_EQ(similar["results"][1]["hits"].size(), 1U);
  const json fetched = RunJson({"fetch", "--id", "nope,heat-1995", "--partial"});
  EXPECT_EQ(fetched["failed_count"], 1);
  EXPECT_EQ(fetched["items"][0]["error"]["message"], "no item \"nope\" in films");
  EXPECT_EQ(fetched["items"][1]["id"], "heat-1995");
}

TEST_F(ClientCommandsTest, PartialFailsWhereNothingIsAnswered) {
  const ProgramRun recommended = Run({"recommend", "--user", "nobody", "--partial"});
  EXPECT_EQ(recommended.exit_code, 1);
  EXPECT_THAT(recommended.printed, StartsWith("for nobody\n  error: no user \"nobody\" in films"));
  EXPECT_EQ(Run({"fetch", "--id", "nope", "--partial"}).exit_code, 1);
  EXPECT_EQ(Run({"similar", "--id", "nope", "--partial", "--json"}).exit_code, 1);
}

TEST_F(ClientCommandsTest, NotesAreToldInFlags) {
  const std::vector<std::string> flags = {
      "recommend",      "--user",       "nobody", "--exclude", "nope",
      "--exclude-seen", "--cold-start", "newest", "-k",        "1"};
  const ProgramRun run = Run(flags);
  EXPECT_THAT(run.printed, HasSubstr("\n  note: --exclude-seen has no effect: no interactions of "
                                     "the user are known\n"));
  EXPECT_THAT(run.printed, HasSubstr("\nnote: --exclude: the collection does not have 1 of these "
                                     "ids, which excludes nothing: \"nope\"\n"));
  const json answer = RunJson(flags);
  EXPECT_EQ(answer["notes"].size(), 1U);
  EXPECT_THAT(answer["results"][0]["notes"][0].get<std::string>(),
              StartsWith("--exclude-seen has no effect"));
}

TEST_F(ClientCommandsTest, HitsShowTheirIdsOnce) {
  const ProgramRun both =
      Run({"similar", "--id", "toy-story-1995", "-k", "1", "--fields", "media_id,title"});
  EXPECT_THAT(both.printed, HasSubstr("\n  rank   score  id                title\n"
                                      "     1  0.7029  toy-story-2-1999  Toy Story 2\n"));
  const ProgramRun alone = Run({"similar", "--id", "toy-story-1995", "-k", "1", "--fields", "id"});
  EXPECT_THAT(alone.printed, HasSubstr("\n  rank   score  id\n     1  0.7029  toy-story-2-1999\n"));
  EXPECT_EQ(Run({"lookup", "toy story", "--limit", "1", "--fields", "id"}).printed,
            "4 items of films match \"toy story\", 1 exactly:\n"
            "  id\n"
            "  toy-story-1995\n"
            "  and 3 more; --limit shows more\n");
  EXPECT_EQ(RunJson({"fetch", "--id", "heat-1995", "--fields", "id"})["items"],
            json::parse(R"([{"id":"heat-1995","payload":{}}])"));
}

TEST_F(ClientCommandsTest, SimilarPrintsTheWholeReceiptOnRequest) {
  const ProgramRun run = Run({"similar", "--id", "heat-1995", "-k", "1", "--receipt"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.printed, HasSubstr("\nexact · cpu · "));
  EXPECT_THAT(run.printed,
              HasSubstr("\n  reason                    the configuration asks for the CPU\n"));
  EXPECT_THAT(run.printed, HasSubstr("\n  batch_size                1 query\n"));
  EXPECT_THAT(run.printed, HasSubstr("\n  request_id         "));
}

TEST_F(ClientCommandsTest, FlagsThatNeedAnotherFlagNameIt) {
  const auto error = [&](std::vector<std::string> arguments) { return Run(arguments).errors; };
  EXPECT_EQ(error({"similar", "--title", "Heat", "--group-size", "2"}),
            "error: --group-size needs --group-by FIELD\n");
  EXPECT_EQ(error({"similar", "--title", "Heat", "--candidates", "20"}),
            "error: --candidates needs --diversity LAMBDA\n");
  EXPECT_EQ(error({"similar", "--title", "Heat", "--unlike", "alien-1979", "--strategy", "best"}),
            "error: --strategy best: give average-vector, best-score or sum-scores\n");
  EXPECT_EQ(error({"recommend", "--user", "user_00042", "--user-weight", "1"}),
            "error: --user-weight needs --like ID\n");
  EXPECT_EQ(error({"recommend", "--user", "user_00042", "--cold-start", "latest"}),
            "error: --cold-start latest: give newest or most-popular\n");
  EXPECT_EQ(error({"recommend", "--user", "user_00042", "--cold-start-field", "year"}),
            "error: --cold-start-field needs --cold-start ORDER\n");
}

}  // namespace
}  // namespace simile::cli

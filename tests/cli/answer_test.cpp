#include "cli/answer.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/film_answer.h"
#include "cli/payload_text.h"

namespace simile::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const Terminal kPipe{};

TEST(AnswerTableTest, ShowsIdTitleYearAndGenresUnderTheHeading) {
  EXPECT_EQ(AnswerTable(FilmAnswer(), {}, kPipe),
            "in films, like Toy Story (1995), toy-story-1995\n"
            "  1  0.7029  toy-story-2-1999  Toy Story 2  1999  Animated, Comedy\n"
            "  2  0.1000  amelie-2001       Amélie 七    2001  Animated, Comedy\n"
            "exact · cpu · 0 us in the engine · 0 rows scanned · snapshot 1 (3f9a12c4)\n");
}

// As filters read it: a bar separates nothing unless the collection says so.
TEST(AnswerTableTest, PrintsATextWithBarsAsItIs) {
  Answer answer = FilmAnswer();
  for (v1::Hit& hit : answer.results.front().hits) {
    (*hit.mutable_payload())["genres"].set_string_value("Drama|War");
  }
  EXPECT_THAT(AnswerTable(answer, {}, kPipe), HasSubstr("1999  Drama|War\n"));
}

TEST(AnswerTableTest, ShowsTheRequestedFieldsWithTheirNames) {
  QueryFlags flags;
  flags.fields = {"year", "missing"};
  const std::string table = AnswerTable(FilmAnswer(), flags, kPipe);
  EXPECT_THAT(table, HasSubstr("rank   score  id                year  missing\n"));
  EXPECT_THAT(table, HasSubstr("   1  0.7029  toy-story-2-1999  1999\n"));
}

TEST(AnswerTableTest, ShowsIdsOnceWhateverTheirFieldIsCalled) {
  QueryFlags flags;
  flags.fields = {"id", "media_id", "year"};
  EXPECT_THAT(AnswerTable(FilmAnswer(), flags, kPipe),
              HasSubstr("rank   score  id                year\n"));
  Answer answer = FilmAnswer();
  for (v1::Hit& hit : answer.results.front().hits) {
    (*hit.mutable_payload())["id"].set_string_value(hit.id());
  }
  EXPECT_THAT(AnswerTable(answer, flags, kPipe),
              HasSubstr("rank   score  id                year\n"));
}

TEST(AnswerTableTest, CutsIdsAfterEverythingElseOnATerminal) {
  const auto table = [](std::size_t width) {
    return AnswerTable(FilmAnswer(), {}, Terminal{true, false, width});
  };
  EXPECT_THAT(table(60),
              HasSubstr("  1  0.7029  toy-story-2-1999  Toy Story 2  1999  Animated,…\n"));
  EXPECT_THAT(table(55), HasSubstr("  1  0.7029  toy-story-2-1999  Toy Sto…  1999  Animate…\n"));
  EXPECT_THAT(table(50), HasSubstr("  1  0.7029  toy-story-…  Toy Sto…  1999  Animate…\n"));
}

TEST(AnswerTableTest, ShowsIdAndFirstFieldsWhenThereIsNoTitle) {
  Answer answer = FilmAnswer();
  for (v1::Hit& hit : answer.results.front().hits) {
    auto& payload = *hit.mutable_payload();
    payload.clear();
    payload["price"].set_double_value(9.5);
    payload["in_stock"].set_bool_value(true);
    payload["brand"].set_string_value("Acme");
    payload["size"].set_string_value("XL");
  }
  const std::string table = AnswerTable(answer, {}, kPipe);
  EXPECT_THAT(table, HasSubstr("rank   score  id                brand  in_stock  price\n"));
  EXPECT_THAT(table, HasSubstr("   1  0.7029  toy-story-2-1999  Acme   true      9.5\n"));
}

TEST(AnswerTableTest, ShowsRowsWithTheirHeadingWhereTheAnswerHasThem) {
  Answer answer = FilmAnswer();
  answer.results.front().hits[0].set_row(3'349);
  answer.results.front().hits[1].set_row(0);
  const std::string table = AnswerTable(answer, {}, kPipe);
  EXPECT_THAT(table,
              HasSubstr("rank   score  id                  row  title        year  genres\n"));
  EXPECT_THAT(table, HasSubstr("   1  0.7029  toy-story-2-1999  3,349  Toy Story 2  1999  "));
}

TEST(AnswerTableTest, SaysWhenScoresAreNotTheMetrics) {
  Answer answer = FilmAnswer();
  answer.results.front().score_kind = v1::SCORE_KIND_BEST_SCORE;
  EXPECT_THAT(AnswerTable(answer, {}, kPipe),
              HasSubstr("toy-story-1995 (scores are of best_score, -1 to 1)\n  1  0.7029"));
  answer.results.front().score_kind = v1::SCORE_KIND_SUM_SCORES;
  EXPECT_THAT(AnswerTable(answer, {}, kPipe),
              HasSubstr("toy-story-1995 (scores are sums over the examples)\n  1  0.7029"));
}

TEST(AnswerTableTest, ShowsNoScoresOfAColdStart) {
  Answer answer = FilmAnswer();
  answer.results.front().cold_start.emplace().set_order(v1::ColdStart::ORDER_NEWEST);
  EXPECT_THAT(AnswerTable(answer, {}, kPipe),
              HasSubstr("  1  toy-story-2-1999  Toy Story 2  1999  Animated, Comedy\n"));
}

TEST(AnswerTableTest, SaysWhyThereAreNoHits) {
  Answer answer = FilmAnswer();
  AnsweredQuery& result = answer.results.front();
  result.hits.Clear();
  QueryFlags flags;
  const auto reason = [&] {
    const std::string text = AnswerTable(answer, flags, kPipe);
    const std::size_t begin = text.find('\n') + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(reason(), "  no hits");
  flags.score_threshold = 2;
  EXPECT_EQ(reason(), "  no hits score 2 or more");
  result.rows_passing = 933;
  EXPECT_EQ(reason(), "  no hits score 2 or more");
  result.rows_passing = 0;
  EXPECT_EQ(reason(), "  no rows pass the filter");
  result.rows_passing.reset();
  flags.score_threshold = 0.95;
  flags.offset = 5'000;
  EXPECT_EQ(reason(), "  no hits after the first 5,000 score 0.95 or more");
  flags.score_threshold.reset();
  EXPECT_EQ(reason(), "  no hits after the first 5,000");
}

TEST(AnswerTableTest, NamesTheBackendsReasonOnlyWhenItIsNotTheCollections) {
  Answer answer = FilmAnswer();
  EXPECT_THAT(AnswerTable(answer, {}, kPipe), HasSubstr("\nexact · cpu · "));
  answer.receipt.set_reason("the GPU was lost");
  EXPECT_THAT(AnswerTable(answer, {}, kPipe), HasSubstr("\nexact · cpu: the GPU was lost · "));
}

TEST(AnswerTableTest, PrintsTheWholeReceiptOnRequest) {
  QueryFlags flags;
  flags.whole_receipt = true;
  const std::string text = AnswerTable(FilmAnswer(), flags, kPipe);
  EXPECT_THAT(text, HasSubstr("\nexact · cpu · "));
  EXPECT_THAT(text, HasSubstr("\n  reason                    no NVIDIA driver on this machine\n"));
  EXPECT_THAT(text, testing::EndsWith("\n  request_id\n"));
}

TEST(AnswerTableTest, ReplacesEscapeSequencesInTitlesAndHeadings) {
  Answer answer = FilmAnswer();
  answer.results.front().heading = "in films, like \x1b[2J";
  (*answer.results.front().hits[0].mutable_payload())["title"].set_string_value("\x1b[2J");
  EXPECT_THAT(AnswerTable(answer, {}, kPipe), testing::Not(HasSubstr("\x1b")));
}

TEST(TableFieldsTest, ShowsATitleAYearAndAList) {
  using testing::ElementsAre;
  EXPECT_THAT(TableFields({"genres", "tags", "title", "year"}, {"genres", "tags"}),
              ElementsAre("title", "year", "genres"));
  EXPECT_THAT(TableFields({"a", "cuisines", "tags", "title"}, {"cuisines", "tags"}),
              ElementsAre("title", "cuisines"));
  EXPECT_THAT(TableFields({"a", "name", "tags", "year"}, {"tags"}),
              ElementsAre("name", "year", "tags"));
  EXPECT_THAT(TableFields({"a", "b", "name"}, {}), ElementsAre("name", "a", "b"));
}

TEST(AnswerJsonTest, HasTheDocumentedShape) {
  const std::string text = AnswerJson(FilmAnswer());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_TRUE(text.starts_with(
      R"({"collection":"films","results":[{"query":{"id":"toy-story-1995"},"score_kind":"cosine",)"
      R"("hits":[{"rank":1,"id":"toy-story-2-1999","score":0.7029,"payload":{"genres":["Animated",)"
      R"("Comedy"],"media_id":"toy-story-2-1999","title":"Toy Story 2","year":1999}},)"))
      << text;
  const json receipt = json::parse(text)["receipt"];
  for (const char* key : {"backend", "device", "engines", "reason", "snapshot_id",
                          "snapshot_version", "batch_size", "queue_us", "compute_us", "total_us",
                          "rows_scanned", "rows_rescored", "rescans", "exact", "request_id"}) {
    EXPECT_TRUE(receipt.contains(key)) << key;
  }
}

TEST(AnswerJsonTest, PrintsScoresThatReadBackAsTheSameFloat) {
  float score = 1.0F;
  for (int i = 0; i < 1'000; ++i) {
    score = std::nextafter(score * 0.97F, 0.0F);
    Answer answer = FilmAnswer();
    answer.results[0].hits[0].set_score(score);
    const json parsed = json::parse(AnswerJson(answer));
    EXPECT_EQ(parsed["results"][0]["hits"][0]["score"].get<float>(), score);
  }
}

TEST(AnswerJsonTest, NamesEachKindOfQuery) {
  Answer answer = FilmAnswer();
  AnsweredQuery& user = answer.results.emplace_back();
  user.user_id = "user_00042";
  user.seen_count = 5;
  AnsweredQuery& vector = answer.results.emplace_back();
  vector.vector_source = "query.npy";
  vector.vector_row = 2;
  const json results = json::parse(AnswerJson(answer))["results"];
  EXPECT_EQ(results[1]["query"], json({{"user_id", "user_00042"}, {"seen_count", 5}}));
  EXPECT_EQ(results[2]["query"], json({{"vector", "query.npy"}, {"row", 2}}));
  EXPECT_EQ(results[2]["hits"], json::array());
}

TEST(AnswerJsonTest, HasRowsWhereTheAnswerHas) {
  Answer answer = FilmAnswer();
  answer.results[0].hits[1].set_row(0);
  const json hits = json::parse(AnswerJson(answer))["results"][0]["hits"];
  EXPECT_FALSE(hits[0].contains("row"));
  EXPECT_EQ(hits[1]["row"], 0);
}

TEST(AnswerJsonTest, SaysHowColdStartRowsAreOrdered) {
  Answer answer = FilmAnswer();
  answer.results[0].score_kind = v1::SCORE_KIND_NONE;
  v1::ColdStart& cold_start = answer.results[0].cold_start.emplace();
  cold_start.set_order(v1::ColdStart::ORDER_MOST_POPULAR);
  const auto result = [&] { return json::parse(AnswerJson(answer))["results"][0]; };
  EXPECT_EQ(result()["cold_start"], json({{"order", "most_popular"}, {"field", nullptr}}));
  EXPECT_EQ(result()["score_kind"], "none");
  cold_start.set_field("votes");
  EXPECT_EQ(result()["cold_start"]["field"], "votes");
}

TEST(AnswerJsonTest, KeepsEveryKindOfPayloadValue) {
  Answer answer = FilmAnswer();
  auto& payload = *answer.results[0].hits[0].mutable_payload();
  payload.clear();
  payload["null"].set_null_value(true);
  payload["bool"].set_bool_value(false);
  payload["whole"].set_int_value(-9'007'199'254'740'993);
  payload["real"].set_double_value(0.5);
  (*payload["object"].mutable_object_value()->mutable_fields())["list"].mutable_list_value();
  EXPECT_EQ(json::parse(AnswerJson(answer))["results"][0]["hits"][0]["payload"],
            json::parse(R"({"null":null,"bool":false,"whole":-9007199254740993,"real":0.5,
                            "object":{"list":[]}})"));
}

TEST(AnswerJsonTest, ReplacesInvalidUtf8InAFileName) {
  Answer answer = FilmAnswer();
  answer.results[0].vector_source = "query-\xFF.npy";
  EXPECT_EQ(json::parse(AnswerJson(answer))["results"][0]["query"]["vector"], "query-\uFFFD.npy");
}

TEST(AnswerJsonTest, ListsTheCandidatesOfAnAmbiguousTitle) {
  v1::LookupResponse found;
  found.set_match_count(16);
  v1::LookupMatch& match = *found.add_matches();
  match.set_quality(v1::LookupMatch::QUALITY_WHOLE);
  match.mutable_item()->set_id("batman-1989");
  const json parsed = json::parse(CandidatesJson("films", "Batman", found));
  EXPECT_EQ(parsed, json::parse(R"({"collection":"films","title":"Batman","match_count":16,
      "candidates":[{"id":"batman-1989","match":"whole","payload":{}}],
      "error":{"code":"INVALID_ARGUMENT","reason":null,"field":null,"retry_after_ms":null,
               "message":"16 items of films match \"Batman\"; name one with --id"}})"));
}

}  // namespace
}  // namespace simile::cli

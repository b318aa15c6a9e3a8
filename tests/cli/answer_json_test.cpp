#include "cli/answer_json.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/film_answer.h"

namespace simile::cli {
namespace {

using nlohmann::json;

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

#include "cli/answer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/film_answer.h"

namespace simile::cli {
namespace {

using testing::HasSubstr;

const Terminal kPipe{};

TEST(AnswerTableTest, ShowsTitleYearAndGenresUnderTheHeading) {
  EXPECT_EQ(AnswerTable(FilmAnswer(), kPipe),
            "films like Toy Story (1995)\n"
            "  1  0.7029  Toy Story 2  1999  Animated, Comedy\n"
            "  2  0.1000  Amélie 七    2001  Animated, Comedy\n"
            "exact · cpu · 0 us in the engine · 0 rows scanned · snapshot 1 (3f9a12c4)\n");
}

TEST(AnswerTableTest, PrintsGenresDividedByBarsAsAList) {
  Answer answer = FilmAnswer();
  for (v1::Hit& hit : answer.results.front().hits) {
    (*hit.mutable_payload())["genres"].set_string_value("Drama|War");
  }
  EXPECT_THAT(AnswerTable(answer, kPipe), HasSubstr("1999  Drama, War\n"));
}

TEST(AnswerTableTest, ShowsTheRequestedFieldsWithTheirNames) {
  Answer answer = FilmAnswer();
  answer.fields = {"year", "missing"};
  const std::string table = AnswerTable(answer, kPipe);
  EXPECT_THAT(table, HasSubstr("rank   score  id                year  missing\n"));
  EXPECT_THAT(table, HasSubstr("   1  0.7029  toy-story-2-1999  1999\n"));
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
  const std::string table = AnswerTable(answer, kPipe);
  EXPECT_THAT(table, HasSubstr("rank   score  id                brand  in_stock  price\n"));
  EXPECT_THAT(table, HasSubstr("   1  0.7029  toy-story-2-1999  Acme   true      9.5\n"));
}

TEST(AnswerTableTest, ShowsRowsWithTheirHeadingWhereTheAnswerHasThem) {
  Answer answer = FilmAnswer();
  answer.results.front().hits[0].set_row(3'349);
  answer.results.front().hits[1].set_row(0);
  const std::string table = AnswerTable(answer, kPipe);
  EXPECT_THAT(table, HasSubstr("rank   score    row  title        year  genres\n"));
  EXPECT_THAT(table, HasSubstr("   1  0.7029  3,349  Toy Story 2  1999  Animated, Comedy\n"));
}

TEST(AnswerTableTest, SaysWhenScoresAreNotTheMetrics) {
  Answer answer = FilmAnswer();
  answer.results.front().score_kind = v1::SCORE_KIND_BEST_SCORE;
  EXPECT_THAT(AnswerTable(answer, kPipe),
              HasSubstr("(1995) (scores are of best_score, -1 to 1)\n  1  0.7029"));
  answer.results.front().score_kind = v1::SCORE_KIND_SUM_SCORES;
  EXPECT_THAT(AnswerTable(answer, kPipe),
              HasSubstr("(1995) (scores are sums over the examples)\n  1  0.7029"));
}

TEST(AnswerTableTest, ShowsNoScoresOfAColdStart) {
  Answer answer = FilmAnswer();
  answer.results.front().cold_start.emplace().set_order(v1::ColdStart::ORDER_NEWEST);
  EXPECT_THAT(AnswerTable(answer, kPipe), HasSubstr("  1  Toy Story 2  1999  Animated, Comedy\n"));
}

TEST(AnswerTableTest, SaysWhenNoRowPasses) {
  Answer answer = FilmAnswer();
  answer.results.front().hits.Clear();
  EXPECT_THAT(AnswerTable(answer, kPipe), HasSubstr("(1995)\n  no rows pass\nexact"));
}

TEST(AnswerTableTest, ReplacesEscapeSequencesInTitlesAndHeadings) {
  Answer answer = FilmAnswer();
  answer.results.front().heading = "films like \x1b[2J";
  (*answer.results.front().hits[0].mutable_payload())["title"].set_string_value("\x1b[2J");
  EXPECT_THAT(AnswerTable(answer, kPipe), testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace simile::cli

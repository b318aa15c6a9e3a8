// Every comparison passes right answers and names each kind of mistake.
#include "cli/verify/check_answer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/sample_data.h"

namespace simile::cli {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr double kSlack = 1e-6;

// Rows 0 to 9 with scores 0.9, 0.8 ... 0.0; row 3 is not allowed.
Expectation TenRows(std::size_t k, std::size_t offset = 0) {
  Expectation expected{.allowed = std::vector<bool>(10, true), .k = k, .offset = offset};
  for (int row = 0; row < 10; ++row) {
    const double score = 0.9 - 0.1 * row;
    expected.scores.push_back({score - kSlack, score + kSlack});
  }
  expected.allowed[3] = false;
  return expected;
}

float RowScore(Row row) { return 0.9F - 0.1F * static_cast<float>(row); }

std::vector<ReturnedHit> MakeHits(std::vector<Row> rows, std::uint32_t first_rank = 1) {
  std::vector<ReturnedHit> hits;
  for (const Row row : rows) hits.push_back({first_rank++, row, RowScore(row)});
  return hits;
}

TEST(CheckHitsTest, PassesTheBestRows) {
  EXPECT_EQ(CheckHits(TenRows(4), MakeHits({0, 1, 2, 4})), std::nullopt);
  EXPECT_EQ(CheckHits(TenRows(3, 2), MakeHits({2, 4, 5}, 3)), std::nullopt);
  EXPECT_EQ(CheckHits(TenRows(20), MakeHits({0, 1, 2, 4, 5, 6, 7, 8, 9})), std::nullopt);
  EXPECT_EQ(CheckHits(TenRows(5, 20), {}), std::nullopt);
}

TEST(CheckHitsTest, NamesEachMistake) {
  const Expectation expected = TenRows(4);
  EXPECT_THAT(CheckHits(expected, MakeHits({0, 1, 4, 5})), Optional(HasSubstr("row 2 is missing")));
  EXPECT_THAT(CheckHits(expected, MakeHits({0, 1, 2, 3})),
              Optional(HasSubstr("row 3 at rank 4 is excluded")));
  EXPECT_THAT(CheckHits(expected, MakeHits({0, 2, 1, 4})),
              Optional(HasSubstr("ranks 2 and 3 are in the wrong order")));
  EXPECT_THAT(CheckHits(expected, MakeHits({0, 1, 2})),
              Optional(HasSubstr("3 hits returned instead of 4")));
  EXPECT_THAT(CheckHits(expected, MakeHits({0, 1, 2, 4, 5})), Optional(HasSubstr("instead of 4")));
  EXPECT_THAT(CheckHits(expected, MakeHits({0, 1, 1, 4})), Optional(HasSubstr("returned twice")));
  EXPECT_THAT(CheckHits(expected, MakeHits({0, 1, 2, 4}, 2)), Optional(HasSubstr("has rank 2")));
  std::vector<ReturnedHit> wrong_score = MakeHits({0, 1, 2, 4});
  wrong_score[1].score += 1e-5F;
  EXPECT_THAT(CheckHits(expected, wrong_score), Optional(HasSubstr("row 1 at rank 2 has score")));
}

TEST(CheckHitsTest, CountsWhatAnOffsetSkips) {
  // Two rows are skipped, so only two better ones may be missing.
  EXPECT_THAT(CheckHits(TenRows(3, 2), MakeHits({4, 5, 6}, 3)),
              Optional(HasSubstr("row 2 is missing")));
  EXPECT_THAT(CheckHits(TenRows(3, 2), MakeHits({1, 2, 4}, 3)),
              Optional(HasSubstr("only 1 row can be better")));
}

TEST(CheckHitsTest, EqualScoresComeInOrderOfRows) {
  Expectation expected = TenRows(2);
  expected.scores[1] = expected.scores[0];
  std::vector<ReturnedHit> hits = MakeHits({0, 1});
  hits[1].score = hits[0].score;
  EXPECT_EQ(CheckHits(expected, hits), std::nullopt);
  std::swap(hits[0].row, hits[1].row);
  EXPECT_THAT(CheckHits(expected, hits), Optional(HasSubstr("wrong order")));
}

TEST(CheckHitsTest, RowsBelowAThresholdAreNeitherReturnedNorMissing) {
  Expectation expected = TenRows(5);
  expected.score_threshold = 0.65;
  EXPECT_EQ(CheckHits(expected, MakeHits({0, 1, 2})), std::nullopt);
  EXPECT_THAT(CheckHits(expected, MakeHits({0, 1})), Optional(HasSubstr("instead of 3")));
  EXPECT_THAT(CheckHits(expected, MakeHits({0, 1, 2, 4})),
              Optional(HasSubstr("below the threshold")));
}

TEST(CheckHitsTest, AcceptsEitherOrderOfScoresThatRoundingCannotTellApart) {
  Expectation expected = TenRows(1);
  expected.scores[1] = {0.9 - kSlack, 0.9 + kSlack};
  EXPECT_EQ(CheckHits(expected, std::vector<ReturnedHit>{{1, 1, 0.9F}}), std::nullopt);
  EXPECT_EQ(CheckHits(expected, std::vector<ReturnedHit>{{1, 0, 0.9F}}), std::nullopt);
}

// Rows 0 and 1 hold "a", 2 and 4 "b", 5 "c", 3 (not allowed) "d".
std::vector<KeywordRows> Keywords() {
  return {{"a", {0, 1}}, {"b", {2, 4}}, {"c", {5}}, {"d", {3}}};
}

TEST(CheckGroupsTest, PassesTheBestGroups) {
  const std::vector<ReturnedGroup> groups = {
      {1, "a", MakeHits({0, 1})}, {2, "b", MakeHits({2, 4})}, {3, "c", MakeHits({5})}};
  EXPECT_EQ(CheckGroups(TenRows(10), 2, Keywords(), groups), std::nullopt);
}

TEST(CheckGroupsTest, NamesEachMistake) {
  const auto check = [](std::vector<ReturnedGroup> groups) {
    return CheckGroups(TenRows(2), 2, Keywords(), groups);
  };
  EXPECT_EQ(check({{1, "a", MakeHits({0, 1})}, {2, "b", MakeHits({2, 4})}}), std::nullopt);
  EXPECT_THAT(check({{1, "a", MakeHits({0, 1})}}), Optional(HasSubstr("1 group returned instead")));
  EXPECT_THAT(check({{1, "a", MakeHits({0, 1})}, {2, "c", MakeHits({5})}}),
              Optional(HasSubstr("group \"b\" is missing")));
  EXPECT_THAT(check({{1, "a", MakeHits({0})}, {2, "b", MakeHits({2, 4})}}),
              Optional(HasSubstr("1 hit returned instead of 2")));
  EXPECT_THAT(check({{1, "a", MakeHits({0, 1})}, {2, "x", MakeHits({2})}}),
              Optional(HasSubstr("no row has this keyword")));
  EXPECT_THAT(check({{1, "b", MakeHits({2, 4})}, {2, "a", MakeHits({0, 1})}}),
              Optional(HasSubstr("ranks below a group")));
  EXPECT_THAT(check({{1, "a", MakeHits({0, 1})}, {2, "a", MakeHits({0, 1})}}),
              Optional(HasSubstr("returned twice")));
}

class CheckDiverseTest : public testing::Test {
 protected:
  // Chooses as Diversity in search.proto says, from exact scores.
  std::vector<ReturnedHit> Choose(const Expectation& expected, const DiversityRule& rule) const {
    std::vector<Row> left;
    for (Row row = 0; row < expected.scores.size(); ++row) left.push_back(row);
    const auto score = [&](Row row) {
      return (expected.scores[row].low + expected.scores[row].high) / 2;
    };
    std::ranges::sort(left, std::greater<>(), score);
    left.resize(rule.candidates);
    std::vector<ReturnedHit> chosen;
    while (chosen.size() < expected.k) {
      const auto relevance = [&](Row row) {
        if (chosen.empty()) return score(row);
        double nearest = -2;
        for (const ReturnedHit& hit : chosen) {
          nearest = std::max(nearest, oracle_.RowSimilarity(hit.row, row).low);
        }
        return rule.lambda * score(row) - (1 - rule.lambda) * nearest;
      };
      const auto best = std::ranges::max_element(left, {}, relevance);
      chosen.push_back(
          {static_cast<std::uint32_t>(chosen.size() + 1), *best, static_cast<float>(score(*best))});
      left.erase(best);
    }
    return chosen;
  }

  const std::shared_ptr<const data::Dataset> dataset_ = engine::RandomDataset(60, 24, 7);
  const Oracle oracle_{*dataset_};
};

TEST_F(CheckDiverseTest, PassesTheChoiceAndNamesAnotherOne) {
  Expectation expected{.allowed = std::vector<bool>(60, true), .k = 8};
  expected.scores = oracle_.Scores({.positive = {{.values = oracle_.ItemVector(5)}}});
  const DiversityRule rule{.lambda = 0.4, .candidates = 30};
  const std::vector<ReturnedHit> chosen = Choose(expected, rule);
  EXPECT_EQ(CheckDiverse(expected, rule, oracle_, chosen), std::nullopt);
  std::vector<ReturnedHit> swapped = chosen;
  std::swap(swapped[1].row, swapped[6].row);
  std::swap(swapped[1].score, swapped[6].score);
  EXPECT_THAT(CheckDiverse(expected, rule, oracle_, swapped), Optional(HasSubstr("more relevant")));
}

TEST_F(CheckDiverseTest, NamesARowThatIsNoCandidate) {
  Expectation expected{.allowed = std::vector<bool>(60, true), .k = 1};
  expected.scores = oracle_.Scores({.positive = {{.values = oracle_.ItemVector(5)}}});
  Row worst = 0;
  for (Row row = 1; row < 60; ++row) {
    if (expected.scores[row].high < expected.scores[worst].low) worst = row;
  }
  const auto score =
      static_cast<float>((expected.scores[worst].low + expected.scores[worst].high) / 2);
  EXPECT_THAT(CheckDiverse(expected, {.lambda = 0.4, .candidates = 30}, oracle_,
                           std::vector<ReturnedHit>{{1, worst, score}}),
              Optional(HasSubstr("is not among the best 30")));
}

TEST(CheckOrderTest, ComparesRowsAndTheirPlaces) {
  const std::vector<Row> rows = {4, 2, 7};
  const std::vector<ReturnedHit> right = {{1, 4, 0}, {2, 2, 0}, {3, 7, 0}};
  EXPECT_EQ(CheckOrder(rows, right), std::nullopt);
  EXPECT_THAT(CheckOrder(rows, std::vector<ReturnedHit>{{1, 4, 0}, {2, 7, 0}, {3, 2, 0}}),
              Optional(HasSubstr("row 7 at rank 2 instead of row 2")));
  EXPECT_THAT(CheckOrder(rows, std::vector<ReturnedHit>{{1, 4, 0}, {3, 2, 0}, {2, 7, 0}}),
              Optional(HasSubstr("hit 1 has rank 3 instead of 2")));
  EXPECT_THAT(CheckOrder(rows, std::span(right).first(2)), Optional(HasSubstr("instead of 3")));
}

}  // namespace
}  // namespace simile::cli

#include "engine/query/resolve_fixture.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/query/kept_vector.h"
#include "engine/sample_data.h"

namespace simile::engine {
namespace {

using base::ErrorReason;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class ResolveDotTest : public ResolveTest {
 protected:
  ResolveDotTest() : ResolveTest(Metric::kDot) {}
};

TEST_F(ResolveTest, BringsAVectorToUnitLengthInDouble) {
  ASSERT_TRUE(Resolve({Of(ByVector{Kept({3, 0, 4})}), Of(ByVector{Kept({1, 1, 1})})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(0.6F, 0, 0.8F));
  const auto third = static_cast<float>(1 / std::sqrt(3.0));
  EXPECT_THAT(Vector(1), ElementsAre(third, third, third));
  EXPECT_THAT(task_.queries[0].excluded_rows, IsEmpty());
}

TEST_F(ResolveTest, NormalizesVectorsWhoseSquaresLeaveSinglePrecision) {
  ASSERT_TRUE(
      Resolve({Of(ByVector{Kept({0x1p-59F, 0, 0})}), Of(ByVector{Kept({0, 0x1p60F, 0})})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(1, 0, 0));
  EXPECT_THAT(Vector(1), ElementsAre(0, 1, 0));
}

TEST_F(ResolveTest, PadsQueriesWithZeros) {
  ASSERT_TRUE(Resolve({Of(ByVector{Kept({1, 2, 3})}), Of(ByItem{"heat-1995"})}).ok());
  for (std::size_t query = 0; query < 2; ++query) {
    for (std::size_t column = 3; column < kLaneCount; ++column) {
      EXPECT_EQ(task_.vectors.view().PaddedRow(query)[column], 0);
    }
  }
}

TEST_F(ResolveDotTest, UsesAVectorAsGiven) {
  ASSERT_TRUE(Resolve({Of(ByVector{Kept({3, -7.5F, 4})})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(3, -7.5F, 4));
}

TEST_F(ResolveTest, RefusesAnotherDimensionNamingTheQuery) {
  const QueryRequest good = Of(ByVector{Kept({1, 0, 0})});
  ExpectError(Resolve({good, good, good, Of(ByVector{Kept(std::vector<float>(768, 1))})}),
              ErrorReason::kDimensionMismatch, "queries[3].vector",
              "queries[3]: vector holds 768 dimensions, films has 3; a vector from another model "
              "cannot be compared");
}

TEST_F(ResolveTest, NamesNoQueryWhenThereIsOnlyOne) {
  ExpectError(
      Resolve({Of(ByVector{Kept({1})})}), ErrorReason::kDimensionMismatch, "queries[0].vector",
      "vector holds 1 dimension, films has 3; a vector from another model cannot be compared");
}

TEST_F(ResolveTest, RefusesAnEmptyVector) {
  ExpectError(
      Resolve({Of(ByVector{})}), ErrorReason::kDimensionMismatch, "queries[0].vector",
      "vector holds 0 dimensions, films has 3; a vector from another model cannot be compared");
}

TEST_F(ResolveTest, RefusesNumbersThatAreNotFinite) {
  ExpectError(Resolve({Of(ByVector{Kept({0, kNaN, 0})})}), ErrorReason::kInvalidField,
              "queries[0].vector", "vector holds NaN at column 1; vectors must be finite");
  ExpectError(Resolve({Of(ByVector{Kept({0, 1, -kInfinity})})}), ErrorReason::kInvalidField,
              "queries[0].vector", "vector holds infinity at column 2; vectors must be finite");
}

TEST_F(ResolveTest, RefusesLengthsOutsideTheRange) {
  const absl::Status zero = Resolve({Of(ByVector{Kept({0, -0.0F, 0})})});
  ExpectError(zero, ErrorReason::kInvalidField, "queries[0].vector",
              "vector is all zeros; a vector needs a direction to be compared");
  EXPECT_EQ(Resolve({Of(ByVector{Kept({0x1p-61F, 0, 0})})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve({Of(ByVector{Kept({0x1p60F, 0x1p60F, 0})})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve({Of(ByVector{Kept({3e38F, 3e38F, 3e38F})})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Resolve({Of(ByVector{Kept({0x1p-60F, 0, 0})})}).ok());
}

TEST_F(ResolveDotTest, RefusesLengthsOutsideTheRangeAlso) {
  EXPECT_EQ(Resolve({Of(ByVector{Kept({0x1p61F, 0, 0})})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve({Of(ByVector{Kept({0x1p-61F, 0, 0})})}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ResolveDotTest, TakesVectorsOfZerosAsAnyOther) {
  dataset_->vectors = engine::MakeMatrix({{0, 0, 0}, {0, 1, 0}, {0, 0, 0}, {0, 0.6F, 0.8F}});
  snapshot_ = engine::MakeSnapshot(dataset_);
  ByExamples average;
  average.positive.push_back({ByItem{"toy-story-1995"}});
  average.negative.push_back({ByVector{Kept({0, 0, 0})}});
  ByVector stored{Kept({0, 0, 0})};
  stored.as_stored = true;
  const ByBlend blend{ByItem{"alien-1979"}, ByUser{"user_00042"}, 0};
  const absl::Status status = Resolve({Of(ByVector{Kept({0, -0.0F, 0})}), Of(stored),
                                       Of(ByItem{"toy-story-1995"}), Of(average), Of(blend)});
  ASSERT_TRUE(status.ok()) << status;
  for (std::size_t query = 0; query < 5; ++query) {
    EXPECT_THAT(Vector(query), ElementsAre(0, 0, 0)) << query;
  }
  EXPECT_THAT(task_.queries[2].excluded_rows, ElementsAre(0));
}

// A snapshot whose second row is skipped.
class ResolveSkippedTest : public ResolveTest {
 protected:
  ResolveSkippedTest() {
    dataset_->vectors =
        engine::MakeMatrix({{1, 0, 0}, {0, 0, 0}, {0.6F, 0.8F, 0}, {0, 0.6F, 0.8F}});
    dataset_->skipped_rows = {1};
    snapshot_ = engine::MakeSnapshot(dataset_);
  }

  std::vector<Row> ReadRows(std::size_t query) const {
    std::vector<Row> rows;
    task_.queries[query].mask->ForEachAllowed(0, 4, [&](Row row) { rows.push_back(row); });
    return rows;
  }
};

TEST_F(ResolveSkippedTest, RefusesASkippedItemAsATarget) {
  const std::string message =
      "item \"heat-1995\" of films has a vector of zeros, which is like nothing (on_zero_row: "
      "skip)";
  ExpectError(Resolve({Of(ByItem{"heat-1995"})}), ErrorReason::kInvalidField, "queries[0].id",
              message);
  ExpectError(Resolve({Of(ByBlend{ByItem{"heat-1995"}, ByUser{"user_00042"}})}),
              ErrorReason::kInvalidField, "queries[0].blend.id", "blend: " + message);
  for (const Strategy strategy :
       {Strategy::kAverageVector, Strategy::kBestScore, Strategy::kSumScores}) {
    ByExamples examples;
    examples.strategy = strategy;
    examples.positive.push_back({ByItem{"alien-1979"}});
    examples.negative.push_back({ByItem{"heat-1995"}});
    ExpectError(Resolve({Of(examples)}), ErrorReason::kInvalidField,
                "queries[0].examples.negative[0].id", "examples.negative[0]: " + message);
  }
}

TEST_F(ResolveSkippedTest, LeavesSkippedRowsOutOfEveryMask) {
  QueryRequest filtered = Of(ByVector{Kept({1, 0, 0})});
  filtered.filter = "year = 1995";
  QueryRequest cold = Of(ByUser{"nobody"});
  cold.cold_start = ColdStart{};
  ASSERT_TRUE(Resolve({Of(ByItem{"alien-1979"}), filtered, cold}).ok());
  EXPECT_EQ(task_.queries[0].mask, snapshot_.searchable);
  EXPECT_THAT(ReadRows(0), ElementsAre(0, 2, 3));
  EXPECT_THAT(ReadRows(1), ElementsAre(0));
  EXPECT_THAT(ReadRows(2), ElementsAre(0, 2, 3));
  EXPECT_EQ(task_.queries[0].existing, nullptr);
}

TEST_F(ResolveSkippedTest, FindsASkippedItemOnlyWhereTheRequiredFilterLetsItPass) {
  options_.required_filters.of_request = "year = 1995";
  ASSERT_TRUE(Resolve({Of(ByItem{"toy-story-1995"})}).ok());
  EXPECT_THAT(ReadRows(0), ElementsAre(0));
  EXPECT_TRUE(task_.queries[0].existing->Allows(1));
  EXPECT_EQ(base::ReasonOf(Resolve({Of(ByItem{"heat-1995"})})), ErrorReason::kInvalidField);
  options_.required_filters.of_request = "year = 1979";
  EXPECT_EQ(base::ReasonOf(Resolve({Of(ByItem{"heat-1995"})})), ErrorReason::kItemNotFound);
}

TEST_F(ResolveTest, SearchesWithAnItemsStoredRowAndExcludesIt) {
  ASSERT_TRUE(Resolve({Of(ByItem{"alien-1979"})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(0.6F, 0.8F, 0));
  EXPECT_THAT(task_.queries[0].excluded_rows, ElementsAre(2));
}

TEST_F(ResolveTest, SuggestsTheNearestItem) {
  ExpectError(Resolve({Of(ByItem{"toy-story-95"})}), ErrorReason::kItemNotFound, "queries[0].id",
              "no item \"toy-story-95\" in films. Did you mean \"toy-story-1995\"?");
  ExpectError(Resolve({Of(ByItem{"heat-1995"}), Of(ByItem{"qqqqqqqqqqqqqqqqqqqq"})}),
              ErrorReason::kItemNotFound, "queries[1].id",
              "queries[1]: no item \"qqqqqqqqqqqqqqqqqqqq\" in films");
}

TEST_F(ResolveTest, SearchesWithAUsersProfile) {
  ASSERT_TRUE(Resolve({Of(ByUser{"user_00042"}), Of(ByUser{"user_00042", true}),
                       Of(ByUser{"user_00007", true})})
                  .ok());
  EXPECT_THAT(Vector(0), ElementsAre(0, 0.8F, 0.6F));
  EXPECT_THAT(task_.queries[0].excluded_rows, IsEmpty());
  EXPECT_THAT(task_.queries[1].excluded_rows, ElementsAre(1, 3));
  EXPECT_THAT(task_.queries[2].excluded_rows, IsEmpty());
}

TEST_F(ResolveTest, SuggestsTheNearestUser) {
  ExpectError(Resolve({Of(ByUser{"user_42"})}), ErrorReason::kUserNotFound, "queries[0].user_id",
              "no user \"user_42\" in films. Did you mean \"user_00042\"?");
}

TEST_F(ResolveTest, RefusesUsersOfACollectionWithoutProfiles) {
  dataset_->profiles = {};
  ExpectError(
      Resolve({Of(ByUser{"user_00042"})}), ErrorReason::kUserNotFound, "queries[0].user_id",
      "films has no user profiles: its folder had no user_ids.json when it was loaded; restart "
      "or reload after adding it");
}

TEST_F(ResolveTest, JoinsAllExclusionsAscendingAndDistinct) {
  QueryRequest request = Of(ByUser{"user_00042", true});
  request.exclude_ids = {"stalker-1979", "toy-story-1995", "toy-story-1995"};
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_THAT(task_.queries[0].excluded_rows, ElementsAre(0, 1, 3));
}

TEST_F(ResolveTest, IgnoresUnknownIdsToExclude) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.exclude_ids = {"gone-2001", "alien-1979", ""};
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_THAT(task_.queries[0].excluded_rows, ElementsAre(1, 2));
}

TEST_F(ResolveTest, CountsTheSkippedHitsIntoK) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.k = 1;
  request.offset = 2;
  request.score_threshold = 0.25F;
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_EQ(task_.queries[0].k, 3U);
  EXPECT_EQ(task_.queries[0].score_threshold, 0.25F);
  EXPECT_EQ(task_.queries[0].mask, nullptr);
}

TEST_F(ResolveTest, LimitsKToTheRows) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.k = 10;
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_EQ(task_.queries[0].k, 4U);
  request.offset = 0xffff'ffffU;
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_EQ(task_.queries[0].k, 4U);
}

TEST_F(ResolveTest, OverwritesATaskThatWasUsed) {
  ASSERT_TRUE(Resolve({Of(ByUser{"user_00042", true}), Of(ByItem{"heat-1995"})}).ok());
  ASSERT_TRUE(Resolve({Of(ByVector{Kept({1, 0, 0})})}).ok());
  EXPECT_EQ(task_.queries.size(), 1U);
  EXPECT_EQ(task_.vectors.row_count(), 1U);
  EXPECT_THAT(task_.queries[0].excluded_rows, IsEmpty());
}

QueryRequest Filtered(std::string_view filter) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.filter = filter;
  return request;
}

TEST_F(ResolveTest, ResolvesEqualFiltersToOneMask) {
  ASSERT_TRUE(Resolve({Filtered("year < 1990"), Filtered("year < 1990"), Filtered(""),
                       Filtered("year >= 1990"), Filtered("year  <  1990")})
                  .ok());
  ASSERT_NE(task_.queries[0].mask, nullptr);
  EXPECT_EQ(task_.queries[0].mask->AllowedCount(), 2U);
  EXPECT_TRUE(task_.queries[0].mask->Allows(2));
  EXPECT_EQ(task_.queries[1].mask, task_.queries[0].mask);
  EXPECT_EQ(task_.queries[2].mask, nullptr);
  EXPECT_TRUE(task_.queries[3].mask->Allows(0));
  EXPECT_EQ(task_.queries[4].mask, task_.queries[0].mask) << "from the cache";
}

TEST_F(ResolveTest, NamesTheWrongFilter) {
  ExpectError(
      Resolve({Filtered("yeer < 1990")}), ErrorReason::kInvalidFilter, "queries[0].filter",
      "filter, column 1: films has no field \"yeer\". Did you mean \"year\"? Fields: year.");
  const absl::Status second = Resolve({Filtered("year < 1990"), Filtered("year <")});
  EXPECT_EQ(base::ReasonOf(second), ErrorReason::kInvalidFilter);
  EXPECT_EQ(base::FieldOf(second), "queries[1].filter");
  QueryRequest by_default = Filtered("year <");
  by_default.filter_is_default = true;
  const absl::Status options = Resolve({Filtered(""), by_default});
  EXPECT_EQ(base::FieldOf(options), "options.filter");
  EXPECT_THAT(std::string(options.message()), testing::StartsWith("filter, column "));
}

TEST_F(ResolveTest, SharesTheRowsThatAllQueriesExclude) {
  const std::vector<std::string_view> ids{"stalker-1979", "gone-2001", "heat-1995", "heat-1995"};
  options_.exclude_ids = ids;
  ASSERT_TRUE(
      Resolve({Of(ByUser{"user_00042"}), Of(ByItem{"heat-1995"}), Of(ByItem{"alien-1979"})}).ok());
  const auto& shared = task_.queries[0].shared_excluded_rows;
  EXPECT_THAT(*shared, ElementsAre(1, 3));
  EXPECT_EQ(task_.queries[1].shared_excluded_rows, shared) << "its own row is among them";
  EXPECT_EQ(task_.queries[2].shared_excluded_rows, nullptr);
  EXPECT_THAT(task_.queries[2].excluded(), ElementsAre(1, 2, 3));
}

TEST_F(ResolveTest, AllowsOnlyTheRowsOfAList) {
  const std::vector<std::string_view> ids{"stalker-1979", "gone-2001", "heat-1995", "heat-1995"};
  options_.allow_ids = ids;
  ASSERT_TRUE(Resolve({Filtered(""), Filtered("year < 1990"), Of(ByItem{"alien-1979"})}).ok());
  const auto allowed = [this](std::size_t query) {
    std::vector<Row> rows;
    task_.queries[query].mask->ForEachAllowed(0, 4, [&](Row row) { rows.push_back(row); });
    return rows;
  };
  EXPECT_THAT(allowed(0), ElementsAre(1, 3));
  EXPECT_THAT(allowed(1), ElementsAre(3));
  EXPECT_EQ(task_.queries[2].mask, task_.queries[0].mask) << "one mask for the call";
  EXPECT_THAT(report_.notes,
              ElementsAre("options.allow_ids: the collection does not have 1 of these ids, which "
                          "allows nothing: \"gone-2001\""));
  // The rows of the filter alone are cached, and those of the list are not.
  options_.allow_ids.reset();
  ASSERT_TRUE(Resolve({Filtered("year < 1990")}).ok());
  EXPECT_GT(task_.queries[0].mask->AllowedCount(), 1U);
  options_.allow_ids.emplace();
  ASSERT_TRUE(Resolve({Filtered("")}).ok());
  EXPECT_EQ(task_.queries[0].mask->AllowedCount(), 0U);
}

TEST_F(ResolveTest, EvaluatesNoFilterForACallThatIsOver) {
  task_.deadline = clock_.Now();
  ExpectError(Resolve({Filtered("year < 1990")}), ErrorReason::kDeadlineExceeded, "",
              "the deadline passed before the filters were evaluated");
  EXPECT_TRUE(Resolve({Filtered("")}).ok()) << "the executor reports other calls";
  task_.deadline = Clock::TimePoint::max();
  std::stop_source caller;
  caller.request_stop();
  task_.cancelled = caller.get_token();
  ExpectError(Resolve({Filtered("year < 1990")}), ErrorReason::kCancelled, "",
              "the caller gave up before the filters were evaluated");
}

std::vector<float> Along(double x, double y, double z) {
  const double length = std::sqrt(x * x + y * y + z * z);
  return {static_cast<float>(x / length), static_cast<float>(y / length),
          static_cast<float>(z / length)};
}

TEST_F(ResolveTest, AveragesExamplesIntoOneVector) {
  const QueryRequest mean =
      Of(MakeExamples(Strategy::kAverageVector, {"toy-story-1995", "heat-1995"}, {}));
  const QueryRequest against =
      Of(MakeExamples(Strategy::kAverageVector, {"toy-story-1995", "heat-1995"}, {"stalker-1979"}));
  ASSERT_TRUE(Resolve({mean, against}).ok());
  EXPECT_EQ(Vector(0), Along(0.5, 0.5, 0));
  EXPECT_EQ(Vector(1), Along(1, 1 - 0.6F, -0.8F))
      << "twice the mean of the positives less that of the negatives";
  EXPECT_THAT(task_.queries[1].excluded_rows, ElementsAre(0, 1, 3));
  EXPECT_TRUE(task_.queries[1].IsPlain());
}

TEST_F(ResolveTest, WeighsTheExamplesOfAnAverage) {
  ByExamples examples =
      MakeExamples(Strategy::kAverageVector, {"toy-story-1995", "heat-1995"}, {"stalker-1979"});
  examples.positive[1].weight = 3;
  examples.negative[0].weight = 7;  // the only negative: its weight cancels
  ASSERT_TRUE(Resolve({Of(examples)}).ok());
  EXPECT_EQ(Vector(0), Along(0.5, 1.5 - 0.6F, -0.8F));
}

TEST_F(ResolveDotTest, KeepsTheLengthOfAnAverage) {
  ByExamples examples = MakeExamples(Strategy::kAverageVector, {"toy-story-1995"}, {});
  examples.positive.push_back({ByVector{Kept({0, 4, 0})}});
  ASSERT_TRUE(Resolve({Of(examples)}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(0.5F, 2, 0));
}

TEST_F(ResolveTest, RefusesExamplesThatCancelEachOtherOut) {
  ByExamples examples = MakeExamples(Strategy::kAverageVector, {"toy-story-1995"}, {});
  examples.positive.push_back({ByVector{Kept({-1, 0, 0})}});
  ExpectError(Resolve({Of(examples)}), ErrorReason::kInvalidField, "queries[0].examples",
              "examples: positive and negative ones cancel each other out, so that no direction is "
              "left to search in; the strategies best_score and sum_scores take them");
}

TEST_F(ResolveTest, KeepsTheExamplesOfBestScoreAsVectors) {
  ByExamples examples =
      MakeExamples(Strategy::kBestScore, {"toy-story-1995"}, {"heat-1995", "alien-1979"});
  examples.negative[1].weight = 2;
  ASSERT_TRUE(
      Resolve({Of(ByItem{"stalker-1979"}), Of(examples), Of(ByVector{Kept({3, 0, 4})})}).ok());
  EXPECT_EQ(task_.vectors.row_count(), 5U);
  EXPECT_THAT(Vector(0), ElementsAre(0, 0.6F, 0.8F));
  EXPECT_THAT(Vector(1), ElementsAre(1, 0, 0));
  EXPECT_THAT(Vector(3), ElementsAre(0.6F, 0.8F, 0));
  EXPECT_THAT(Vector(4), ElementsAre(0.6F, 0, 0.8F));
  const engine::ResolvedQuery& query = task_.queries[1];
  EXPECT_EQ(query.scoring, engine::Scoring::kBestScore);
  EXPECT_EQ(query.vector_count, 3U);
  EXPECT_EQ(query.positive_count, 1U);
  EXPECT_THAT(query.weights, ElementsAre(1, 1, 2));
  EXPECT_THAT(query.excluded_rows, ElementsAre(0, 1, 2));
}

TEST_F(ResolveTest, NamesTheUnknownExample) {
  const QueryRequest good = Of(ByItem{"heat-1995"});
  ExpectError(Resolve({good, Of(MakeExamples(Strategy::kSumScores, {"heat-1995"},
                                             {"heat-1995", "heat-95"}))}),
              ErrorReason::kItemNotFound, "queries[1].examples.negative[1].id",
              "queries[1]: examples.negative[1]: no item \"heat-95\" in films. Did you mean "
              "\"heat-1995\"?");
}

TEST_F(ResolveDotTest, RefusesExamplesWhoseSumsCouldOverflow) {
  ByExamples examples;
  examples.strategy = Strategy::kSumScores;
  examples.positive.push_back({ByVector{Kept({0x1p59F, 0, 0})}, 1'000});
  EXPECT_EQ(Resolve({Of(examples)}).code(), absl::StatusCode::kInvalidArgument);
  examples.positive[0].weight = 100;
  EXPECT_TRUE(Resolve({Of(examples)}).ok());
}

TEST_F(ResolveTest, BlendsAnItemWithAUser) {
  ByBlend blend{ByItem{"toy-story-1995"}, ByUser{"user_00042", true}, 0.25F};
  ASSERT_TRUE(Resolve({Of(blend)}).ok());
  EXPECT_EQ(Vector(0), Along(0.75, 0.25 * 0.8F, 0.25 * 0.6F));
  EXPECT_THAT(task_.queries[0].excluded_rows, ElementsAre(0, 1, 3));
  blend.user_weight = 0;
  ASSERT_TRUE(Resolve({Of(blend)}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(1, 0, 0));
  blend.user_weight = 1;
  ASSERT_TRUE(Resolve({Of(blend)}).ok());
  EXPECT_EQ(Vector(0), Along(0, 0.8F, 0.6F));
}

TEST_F(ResolveTest, NamesTheErrorOfABlend) {
  ExpectError(Resolve({Of(ByBlend{ByItem{"heat-1995"}, ByUser{"user_42"}})}),
              ErrorReason::kUserNotFound, "queries[0].blend.user_id",
              "blend: no user \"user_42\" in films. Did you mean \"user_00042\"?");
  ExpectError(Resolve({Of(ByBlend{ByVector{Kept({0, 0, -2})}, ByUser{"user_00007"}})}),
              ErrorReason::kInvalidField, "queries[0].blend",
              "blend: its two vectors cancel each other out, so that no direction is left to "
              "search in; give another weight");
}

TEST_F(ResolveTest, AddsTheSharedExclusionsToEveryQuery) {
  const std::vector<std::string_view> shared = {"stalker-1979", "gone-2001", "toy-story-1995",
                                                "stalker-1979"};
  options_.exclude_ids = shared;
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.exclude_ids = {"toy-story-1995"};
  ASSERT_TRUE(Resolve({request, Of(ByVector{Kept({1, 0, 0})}), WithColdStart("nobody", {})}).ok());
  EXPECT_THAT(task_.queries[0].excluded(), ElementsAre(0, 1, 3));
  EXPECT_THAT(task_.queries[1].excluded(), ElementsAre(0, 3));
  EXPECT_THAT(task_.queries[2].excluded(), ElementsAre(0, 3));
}

TEST_F(ResolveTest, AnswersAUserWithoutAProfileWithTheNewestRows) {
  QueryRequest request = WithColdStart("nobody", {});
  request.exclude_ids = {"toy-story-1995"};
  ASSERT_TRUE(Resolve({request, Of(ByItem{"heat-1995"})}).ok());
  const engine::ResolvedQuery& query = task_.queries[0];
  ASSERT_TRUE(query.order.has_value());
  EXPECT_EQ(query.order->field(), "year");
  EXPECT_THAT(FirstRows(query), ElementsAre(1, 2, 3)) << "equal years by row";
  EXPECT_EQ(query.vector_count, 0U);
  EXPECT_EQ(task_.vectors.row_count(), 1U);
  EXPECT_THAT(Vector(0), ElementsAre(0, 1, 0));
}

TEST_F(ResolveTest, AnswersWithWhatMostUsersHaveSeenThenTheOthers) {
  dataset_->profiles.most_seen = {3, 1};
  QueryRequest request =
      WithColdStart("nobody", {.order = ColdStart::Order::kMostPopular, .field = {}});
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_EQ(task_.queries[0].order->field(), "") << "how many users have seen a row";
  EXPECT_THAT(FirstRows(task_.queries[0]), ElementsAre(3, 1, 0));
  request.filter = "year > 1990";
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_THAT(FirstRows(task_.queries[0]), ElementsAre(1, 0));
}

TEST_F(ResolveTest, UsesAColdStartOnlyForUsersWithoutAProfile) {
  ASSERT_TRUE(Resolve({WithColdStart("user_00042", {})}).ok());
  EXPECT_FALSE(task_.queries[0].order.has_value());
  EXPECT_THAT(Vector(0), ElementsAre(0, 0.8F, 0.6F));
}

TEST_F(ResolveTest, DoesNotDiversifyAColdStart) {
  QueryRequest request = WithColdStart("nobody", {});
  request.diversity = {0.5F, 10};
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_FALSE(task_.queries[0].diversity.has_value());
}

TEST_F(ResolveTest, NamesTheFieldsThatAColdStartCanBeOrderedBy) {
  ExpectError(
      Resolve({WithColdStart("nobody", {.order = ColdStart::Order::kMostPopular, .field = {}})}),
      ErrorReason::kInvalidField, "options.cold_start",
      "cold_start: films has no interactions to tell what is popular; name a field; fields with an "
      "order: year");
  ExpectError(
      Resolve({WithColdStart("nobody", {.order = {}, .field = "years"})}),
      ErrorReason::kUnknownPayloadField, "options.cold_start.field",
      "cold_start.field: films has no field \"years\". Did you mean \"year\"? Fields: year.");
  dataset_->payload = {};
  snapshot_ = engine::MakeSnapshot(dataset_);
  ExpectError(Resolve({WithColdStart("nobody", {})}), ErrorReason::kInvalidField,
              "options.cold_start.field",
              "cold_start.field: films does not tell by itself which rows are newest; name a "
              "field; no field of it has an order");
}

TEST_F(ResolveTest, RefusesAWrongColdStartFieldAlsoWhereNoneIsNeeded) {
  constexpr char kMessage[] =
      "cold_start.field: films has no field \"years\". Did you mean \"year\"? Fields: year.";
  ExpectError(Resolve({WithColdStart("user_00042", {.order = {}, .field = "years"})}),
              ErrorReason::kUnknownPayloadField, "options.cold_start.field", kMessage);
  QueryRequest by_item = Of(ByItem{"heat-1995"});
  by_item.cold_start = {.order = {}, .field = "years"};
  ExpectError(Resolve({by_item}), ErrorReason::kUnknownPayloadField, "options.cold_start.field",
              kMessage);
  // Without a field, the collection need not have an order of its own.
  dataset_->payload = {};
  snapshot_ = engine::MakeSnapshot(dataset_);
  EXPECT_TRUE(Resolve({WithColdStart("user_00042", {})}).ok());
}

TEST_F(ResolveTest, RefusesGroupsByFieldsOfOtherTypes) {
  data::PayloadTableBuilder payload(snapshot_.row_count(), Limits{});
  for (std::size_t row = 0; row < snapshot_.row_count(); ++row) {
    ASSERT_TRUE(payload.Add({{"rating", {0.5}}, {"year", {std::int64_t{1990}}}}).ok());
  }
  dataset_->payload = std::move(payload).Build();
  snapshot_ = engine::MakeSnapshot(dataset_);
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.group_by = {"year", 1};
  EXPECT_TRUE(Resolve({request}).ok());
  request.group_by = {"rating", 1};
  ExpectError(Resolve({request}), ErrorReason::kInvalidField, "queries[0].group_by.field",
              "group_by: rating is of type number; rows are grouped by keywords or integers: year");
}

TEST_F(ResolveTest, SearchesBitForBitWithAVectorAsStored) {
  const std::vector<float> stored = {0.600003F, 0.8F, 0};  // within 1e-5 of unit length
  ASSERT_TRUE(Resolve({Of(ByVector{Kept(stored)}), Of(ByVector{Kept(stored), true})}).ok());
  EXPECT_NE(Vector(0), stored);
  EXPECT_EQ(Vector(1), stored);
  ByExamples examples;
  examples.strategy = Strategy::kBestScore;
  examples.positive.push_back({ByVector{Kept(stored), true}});
  ASSERT_TRUE(Resolve({Of(examples)}).ok());
  EXPECT_EQ(Vector(0), stored);
}

TEST_F(ResolveTest, RefusesAVectorAsStoredOfAnotherLength) {
  ExpectError(Resolve({Of(ByVector{Kept({1.0002F, 0, 0}), true})}), ErrorReason::kInvalidField,
              "queries[0].vector",
              "vector has length 1.0002 and is marked as_stored; vectors that films stores have "
              "length 1 within 1e-05; leave out as_stored to have it brought to that length");
  EXPECT_TRUE(Resolve({Of(ByVector{Kept({1.0000099F, 0, 0}), true})}).ok());
  EXPECT_FALSE(Resolve({Of(ByVector{Kept({1.0000102F, 0, 0}), true})}).ok());
  EXPECT_TRUE(Resolve({Of(ByVector{Kept({0.9999901F, 0, 0}), true})}).ok());
  EXPECT_FALSE(Resolve({Of(ByVector{Kept({0.9999898F, 0, 0}), true})}).ok());
  ExpectError(Resolve({Of(ByVector{Kept({1, kNaN, 0}), true, "packed_vector"})}),
              ErrorReason::kInvalidField, "queries[0].packed_vector",
              "vector holds NaN at column 1; vectors must be finite");
}

TEST_F(ResolveDotTest, TakesAVectorAsStoredOfAnyLength) {
  ASSERT_TRUE(Resolve({Of(ByVector{Kept({3, -7.5F, 4}), true})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(3, -7.5F, 4));
}

}  // namespace
}  // namespace simile::engine

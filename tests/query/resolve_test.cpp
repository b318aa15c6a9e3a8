#include "query/resolve.h"

#include <cmath>
#include <limits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/payload_builder.h"
#include "engine/fake_clock.h"
#include "engine/sample_data.h"

namespace simile::query {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Four films of three dimensions; two users, of whom the first has seen two films.
class ResolveTest : public testing::Test {
 protected:
  explicit ResolveTest(Metric metric = Metric::kCosine) {
    auto dataset = std::make_shared<data::Dataset>();
    dataset->metric = metric;
    dataset->vectors = engine::MatrixOf({{1, 0, 0}, {0, 1, 0}, {0.6F, 0.8F, 0}, {0, 0.6F, 0.8F}});
    dataset->ids = engine::IdsOf({"toy-story-1995", "heat-1995", "alien-1979", "stalker-1979"});
    dataset->profiles.ids = engine::IdsOf({"user_00042", "user_00007"});
    dataset->profiles.vectors = engine::MatrixOf({{0, 0.8F, 0.6F}, {0, 0, 1}});
    dataset->profiles.seen = data::SeenSets::FromPairs(2, {{0, 3}, {0, 1}});
    dataset->payload = Years();
    task_.deadline = Clock::TimePoint::max();
    dataset_ = dataset;
    snapshot_ = engine::SnapshotOf(dataset);
  }

  static data::PayloadTable Years() {
    data::PayloadTableBuilder builder(4, Limits{});
    for (const std::int64_t year : {1995, 1995, 1979, 1979})
      EXPECT_TRUE(builder.Add({{"year", {year}}}).ok());
    return std::move(builder).Build();
  }

  absl::Status Resolve(const std::vector<QueryRequest>& requests) {
    return ResolveQueries(snapshot_, requests, shared_exclude_ids_, clock_, task_);
  }
  std::vector<float> Vector(std::size_t query) const {
    const std::span<const float> row = task_.vectors.view()[query];
    return {row.begin(), row.end()};
  }

  std::shared_ptr<data::Dataset> dataset_;
  engine::Snapshot snapshot_;
  engine::FakeClock clock_;
  std::vector<std::string_view> shared_exclude_ids_;
  engine::SearchTask task_;
};

class ResolveDotTest : public ResolveTest {
 protected:
  ResolveDotTest() : ResolveTest(Metric::kDot) {}
};

QueryRequest Of(decltype(QueryRequest::target) target) {
  QueryRequest request;
  request.target = std::move(target);
  return request;
}

TEST_F(ResolveTest, BringsAVectorToUnitLengthInDouble) {
  ASSERT_TRUE(Resolve({Of(ByVector{{3, 0, 4}}), Of(ByVector{{1, 1, 1}})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(0.6F, 0, 0.8F));
  const auto third = static_cast<float>(1 / std::sqrt(3.0));
  EXPECT_THAT(Vector(1), ElementsAre(third, third, third));
  EXPECT_THAT(task_.queries[0].excluded_rows, IsEmpty());
}

TEST_F(ResolveTest, NormalizesVectorsWhoseSquaresLeaveSinglePrecision) {
  ASSERT_TRUE(Resolve({Of(ByVector{{0x1p-59F, 0, 0}}), Of(ByVector{{0, 0x1p60F, 0}})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(1, 0, 0));
  EXPECT_THAT(Vector(1), ElementsAre(0, 1, 0));
}

TEST_F(ResolveTest, PadsQueriesWithZeros) {
  ASSERT_TRUE(Resolve({Of(ByVector{{1, 2, 3}}), Of(ByItem{"heat-1995"})}).ok());
  for (std::size_t query = 0; query < 2; ++query) {
    for (std::size_t column = 3; column < kLaneCount; ++column) {
      EXPECT_EQ(task_.vectors.view().PaddedRow(query)[column], 0);
    }
  }
}

TEST_F(ResolveDotTest, UsesAVectorAsGiven) {
  ASSERT_TRUE(Resolve({Of(ByVector{{3, -7.5F, 4}})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(3, -7.5F, 4));
}

TEST_F(ResolveTest, RefusesAnotherDimensionNamingTheQuery) {
  const QueryRequest good = Of(ByVector{{1, 0, 0}});
  EXPECT_EQ(Resolve({good, good, good, Of(ByVector{std::vector<float>(768, 1)})}),
            absl::InvalidArgumentError("queries[3]: vector holds 768 dimensions, films has 3; a "
                                       "vector from another model cannot be compared"));
}

TEST_F(ResolveTest, NamesNoQueryWhenThereIsOnlyOne) {
  EXPECT_EQ(Resolve({Of(ByVector{{1}})}),
            absl::InvalidArgumentError("vector holds 1 dimension, films has 3; a vector from "
                                       "another model cannot be compared"));
}

TEST_F(ResolveTest, RefusesAnEmptyVector) {
  EXPECT_EQ(Resolve({Of(ByVector{})}),
            absl::InvalidArgumentError("vector holds 0 dimensions, films has 3; a vector from "
                                       "another model cannot be compared"));
}

TEST_F(ResolveTest, RefusesNumbersThatAreNotFinite) {
  EXPECT_EQ(Resolve({Of(ByVector{{0, kNaN, 0}})}),
            absl::InvalidArgumentError("vector holds NaN at column 1; vectors must be finite"));
  EXPECT_EQ(
      Resolve({Of(ByVector{{0, 1, -kInfinity}})}),
      absl::InvalidArgumentError("vector holds infinity at column 2; vectors must be finite"));
}

TEST_F(ResolveTest, RefusesLengthsOutsideTheRange) {
  const absl::Status zero = Resolve({Of(ByVector{{0, -0.0F, 0}})});
  EXPECT_EQ(zero, absl::InvalidArgumentError("vector has length 0; lengths from 2^-60 to 2^60 can "
                                             "be compared"));
  EXPECT_EQ(Resolve({Of(ByVector{{0x1p-61F, 0, 0}})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve({Of(ByVector{{0x1p60F, 0x1p60F, 0}})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve({Of(ByVector{{3e38F, 3e38F, 3e38F}})}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Resolve({Of(ByVector{{0x1p-60F, 0, 0}})}).ok());
}

TEST_F(ResolveDotTest, RefusesLengthsOutsideTheRangeAlso) {
  EXPECT_EQ(Resolve({Of(ByVector{{0x1p61F, 0, 0}})}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve({Of(ByVector{{0, 0, 0}})}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ResolveTest, SearchesWithAnItemsStoredRowAndExcludesIt) {
  ASSERT_TRUE(Resolve({Of(ByItem{"alien-1979"})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(0.6F, 0.8F, 0));
  EXPECT_THAT(task_.queries[0].excluded_rows, ElementsAre(2));
}

TEST_F(ResolveTest, SuggestsTheNearestItem) {
  EXPECT_EQ(
      Resolve({Of(ByItem{"toy-story-95"})}),
      absl::NotFoundError("no item \"toy-story-95\" in films. Did you mean \"toy-story-1995\"?"));
  EXPECT_EQ(Resolve({Of(ByItem{"heat-1995"}), Of(ByItem{"qqqqqqqqqqqqqqqqqqqq"})}),
            absl::NotFoundError("queries[1]: no item \"qqqqqqqqqqqqqqqqqqqq\" in films"));
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
  EXPECT_EQ(Resolve({Of(ByUser{"user_42"})}),
            absl::NotFoundError("no user \"user_42\" in films. Did you mean \"user_00042\"?"));
}

TEST_F(ResolveTest, RefusesUsersOfACollectionWithoutProfiles) {
  dataset_->profiles = {};
  EXPECT_EQ(
      Resolve({Of(ByUser{"user_00042"})}),
      absl::FailedPreconditionError("films has no user profiles (no user_ids.json in its folder)"));
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
  ASSERT_TRUE(Resolve({Of(ByVector{{1, 0, 0}})}).ok());
  EXPECT_EQ(task_.queries.size(), 1U);
  EXPECT_EQ(task_.vectors.row_count(), 1U);
  EXPECT_THAT(task_.queries[0].excluded_rows, IsEmpty());
}

QueryRequest Filtered(const std::string& filter) {
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
  EXPECT_EQ(Resolve({Filtered("yeer < 1990")}).message(),
            "filter, column 1: films has no field \"yeer\". Did you mean \"year\"? Fields: year.");
  EXPECT_EQ(Resolve({Filtered("year < 1990"), Filtered("year <")}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Resolve({Filtered(""), Filtered("year <")}).message()),
              testing::StartsWith("queries[1]: filter, column "));
}

TEST_F(ResolveTest, EvaluatesNoFilterForACallThatIsOver) {
  task_.deadline = clock_.Now();
  EXPECT_EQ(Resolve({Filtered("year < 1990")}),
            absl::DeadlineExceededError("the deadline passed before the filters were evaluated"));
  EXPECT_TRUE(Resolve({Filtered("")}).ok()) << "the executor reports other calls";
  task_.deadline = Clock::TimePoint::max();
  task_.cancelled = [] { return true; };
  EXPECT_EQ(Resolve({Filtered("year < 1990")}),
            absl::CancelledError("the caller gave up before the filters were evaluated"));
}

ByExamples ExamplesOf(Strategy strategy, const std::vector<std::string>& positive,
                      const std::vector<std::string>& negative) {
  ByExamples examples;
  examples.strategy = strategy;
  for (const std::string& id : positive) examples.positive.push_back({ByItem{id}});
  for (const std::string& id : negative) examples.negative.push_back({ByItem{id}});
  return examples;
}

// A unit vector along (x, y, z).
std::vector<float> Along(double x, double y, double z) {
  const double length = std::sqrt(x * x + y * y + z * z);
  return {static_cast<float>(x / length), static_cast<float>(y / length),
          static_cast<float>(z / length)};
}

TEST_F(ResolveTest, AveragesExamplesIntoOneVector) {
  const QueryRequest mean =
      Of(ExamplesOf(Strategy::kAverageVector, {"toy-story-1995", "heat-1995"}, {}));
  const QueryRequest against =
      Of(ExamplesOf(Strategy::kAverageVector, {"toy-story-1995", "heat-1995"}, {"stalker-1979"}));
  ASSERT_TRUE(Resolve({mean, against}).ok());
  EXPECT_EQ(Vector(0), Along(0.5, 0.5, 0));
  EXPECT_EQ(Vector(1), Along(1, 1 - 0.6F, -0.8F))
      << "twice the mean of the positives less that of the negatives";
  EXPECT_THAT(task_.queries[1].excluded_rows, ElementsAre(0, 1, 3));
  EXPECT_TRUE(task_.queries[1].IsPlain());
}

TEST_F(ResolveTest, WeighsTheExamplesOfAnAverage) {
  ByExamples examples =
      ExamplesOf(Strategy::kAverageVector, {"toy-story-1995", "heat-1995"}, {"stalker-1979"});
  examples.positive[1].weight = 3;
  examples.negative[0].weight = 7;  // the only negative: its weight cancels
  ASSERT_TRUE(Resolve({Of(examples)}).ok());
  EXPECT_EQ(Vector(0), Along(0.5, 1.5 - 0.6F, -0.8F));
}

TEST_F(ResolveDotTest, KeepsTheLengthOfAnAverage) {
  ByExamples examples = ExamplesOf(Strategy::kAverageVector, {"toy-story-1995"}, {});
  examples.positive.push_back({ByVector{{0, 4, 0}}});
  ASSERT_TRUE(Resolve({Of(examples)}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(0.5F, 2, 0));
}

TEST_F(ResolveTest, RefusesExamplesThatCancelEachOtherOut) {
  ByExamples examples = ExamplesOf(Strategy::kAverageVector, {"toy-story-1995"}, {});
  examples.positive.push_back({ByVector{{-1, 0, 0}}});
  EXPECT_EQ(Resolve({Of(examples)}),
            absl::InvalidArgumentError(
                "examples: positive and negative ones cancel each other out, so that no direction "
                "is left to search in; BEST_SCORE and SUM_SCORES take them"));
}

TEST_F(ResolveTest, KeepsTheExamplesOfBestScoreAsVectors) {
  ByExamples examples =
      ExamplesOf(Strategy::kBestScore, {"toy-story-1995"}, {"heat-1995", "alien-1979"});
  examples.negative[1].weight = 2;
  ASSERT_TRUE(Resolve({Of(ByItem{"stalker-1979"}), Of(examples), Of(ByVector{{3, 0, 4}})}).ok());
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
  EXPECT_EQ(
      Resolve(
          {good, Of(ExamplesOf(Strategy::kSumScores, {"heat-1995"}, {"heat-1995", "heat-95"}))}),
      absl::NotFoundError("queries[1]: examples.negative[1]: no item \"heat-95\" in films. Did you "
                          "mean \"heat-1995\"?"));
}

TEST_F(ResolveDotTest, RefusesExamplesWhoseSumsCouldOverflow) {
  ByExamples examples;
  examples.strategy = Strategy::kSumScores;
  examples.positive.push_back({ByVector{{0x1p59F, 0, 0}}, 1'000});
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
  EXPECT_EQ(Resolve({Of(ByBlend{ByItem{"heat-1995"}, ByUser{"user_42"}})}),
            absl::NotFoundError("blend: no user \"user_42\" in films. Did you mean "
                                "\"user_00042\"?"));
  EXPECT_EQ(Resolve({Of(ByBlend{ByVector{{0, 0, -2}}, ByUser{"user_00007"}})}),
            absl::InvalidArgumentError("blend: its two vectors cancel each other out, so that no "
                                       "direction is left to search in; give another user_weight"));
}

QueryRequest WithColdStart(const std::string& user, ColdStart cold_start) {
  QueryRequest request = Of(ByUser{user});
  request.k = 3;
  request.cold_start = std::move(cold_start);
  return request;
}

// The rows that the query is answered with.
std::vector<Row> FirstRows(const engine::ResolvedQuery& query) {
  return query.order->First(query.k, query.mask.get(), query.excluded_rows);
}

TEST_F(ResolveTest, AddsTheSharedExclusionsToEveryQuery) {
  shared_exclude_ids_ = {"stalker-1979", "gone-2001", "toy-story-1995", "stalker-1979"};
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.exclude_ids = {"toy-story-1995"};
  ASSERT_TRUE(Resolve({request, Of(ByVector{{1, 0, 0}}), WithColdStart("nobody", {})}).ok());
  EXPECT_THAT(task_.queries[0].excluded_rows, ElementsAre(0, 1, 3));
  EXPECT_THAT(task_.queries[1].excluded_rows, ElementsAre(0, 3));
  EXPECT_THAT(task_.queries[2].excluded_rows, ElementsAre(0, 3));
}

TEST_F(ResolveTest, AnswersAUserWithoutAProfileWithTheNewestRows) {
  QueryRequest request = WithColdStart("nobody", {});
  request.exclude_ids = {"toy-story-1995"};
  ASSERT_TRUE(Resolve({request, Of(ByItem{"heat-1995"})}).ok());
  const engine::ResolvedQuery& query = task_.queries[0];
  ASSERT_TRUE(query.order.has_value());
  EXPECT_EQ(query.order->name(), "year");
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
  EXPECT_EQ(task_.queries[0].order->name(), "users who have seen it");
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
  EXPECT_EQ(
      Resolve({WithColdStart("nobody", {.order = ColdStart::Order::kMostPopular, .field = {}})}),
      absl::InvalidArgumentError("cold_start: films has no interactions to tell what is "
                                 "popular; name a field; fields with an order: year"));
  EXPECT_EQ(
      Resolve({WithColdStart("nobody", {.order = {}, .field = "years"})}),
      absl::InvalidArgumentError("cold_start.field: films has no field \"years\". Did you mean "
                                 "\"year\"? Fields: year."));
  dataset_->payload = {};
  snapshot_ = engine::SnapshotOf(dataset_);
  EXPECT_EQ(Resolve({WithColdStart("nobody", {})}),
            absl::InvalidArgumentError("cold_start.field: films does not tell by itself which rows "
                                       "are newest; name a field; no field of it has an order"));
}

TEST_F(ResolveTest, RefusesGroupsByFieldsWithoutKeywords) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.group_by = {"year", 1};
  EXPECT_EQ(Resolve({request}),
            absl::InvalidArgumentError("group_by: year is of type integer; rows are grouped by "
                                       "keywords: this collection has none"));
}

}  // namespace
}  // namespace simile::query

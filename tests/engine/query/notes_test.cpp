#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/query/kept_vector.h"
#include "engine/query/resolve_fixture.h"

namespace simile::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What a query is told of its options.
class NotesTest : public ResolveTest {
 protected:
  explicit NotesTest(Metric metric = Metric::kCosine) : ResolveTest(metric) {}

  std::vector<std::string> ResolveNotes(const QueryRequest& request) {
    const absl::Status status = Resolve({request});
    EXPECT_TRUE(status.ok()) << status;
    return report_.queries[0].notes;
  }
};

class NotesOfDotTest : public NotesTest {
 protected:
  NotesOfDotTest() : NotesTest(Metric::kDot) {}
};

TEST_F(NotesTest, AreNoneWhereEveryOptionHasAnEffect) {
  QueryRequest request = Of(ByUser{"user_00042", true});
  request.exclude_ids = {"heat-1995"};
  request.filter = "year > 1970";
  request.score_threshold = 0.5F;
  request.diversity = engine::Diversity{0.5F, 4};
  EXPECT_THAT(ResolveNotes(request), IsEmpty());
  EXPECT_THAT(report_.notes, IsEmpty());
}

TEST_F(NotesTest, NameExcludedIdsThatTheCollectionDoesNotHave) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.exclude_ids = {"zz", "alien-1979", "yy"};
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("exclude_ids: the collection does not have 2 of these "
                          "ids, which exclude nothing: \"zz\", \"yy\""));
  request.exclude_ids = {"zz"};
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("exclude_ids: the collection does not have 1 of these "
                          "ids, which excludes nothing: \"zz\""));
}

TEST_F(NotesTest, NameTheFirstThreeOfManyExcludedIds) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.exclude_ids = {"a", "b", "alien-1979", "c", "d", "e"};
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("exclude_ids: the collection does not have 5 of these ids, which exclude "
                          "nothing: \"a\", \"b\", \"c\", and 2 more"));
}

TEST_F(NotesTest, NameExcludedIdsOfTheOptionsOnce) {
  const std::vector<std::string_view> shared{"zz", "alien-1979"};
  options_.exclude_ids = shared;
  ASSERT_TRUE(Resolve({Of(ByItem{"heat-1995"}), Of(ByItem{"heat-1995"})}).ok());
  EXPECT_THAT(report_.notes, ElementsAre("options.exclude_ids: the collection does not have 1 of "
                                         "these ids, which excludes nothing: \"zz\""));
  EXPECT_THAT(report_.queries[0].notes, IsEmpty());
}

TEST_F(NotesTest, TellHiddenExcludedIdsNoOtherThanUnknownOnes) {
  options_.required_filters.of_request = "year = 1979";
  QueryRequest request = Of(ByVector{Kept({1, 0, 0})});
  request.exclude_ids = {"heat-1995", "heat-1994"};
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("exclude_ids: the collection does not have 2 of these ids, which exclude "
                          "nothing: \"heat-1995\", \"heat-1994\""));
}

TEST_F(NotesTest, SayThatNothingIsKnownAsSeen) {
  const std::vector<std::string> expected{
      "exclude_seen has no effect: no interactions of the user are known"};
  EXPECT_EQ(ResolveNotes(Of(ByUser{"user_00007", true})), expected);
  EXPECT_EQ(ResolveNotes(Of(ByBlend{ByItem{"heat-1995"}, ByUser{"user_00007", true}, 0.5F})),
            expected);
  QueryRequest cold = WithColdStart("new", {.order = ColdStart::Order::kNewest, .field = "year"});
  std::get<ByUser>(cold.target).exclude_seen = true;
  EXPECT_THAT(ResolveNotes(cold),
              ElementsAre("exclude_seen has no effect: no interactions of the user are known"));
}

TEST_F(NotesTest, CountSeenItemsThatExistForTheCall) {
  ASSERT_TRUE(Resolve({Of(ByUser{"user_00042", true})}).ok());
  EXPECT_EQ(report_.queries[0].seen_count, 2U);
  options_.required_filters.of_request = "year = 1979";
  EXPECT_THAT(ResolveNotes(Of(ByUser{"user_00042", true})), IsEmpty());
  EXPECT_EQ(report_.queries[0].seen_count, 1U);
}

TEST_F(NotesTest, SayWhatAColdStartDoesNotTake) {
  QueryRequest cold = WithColdStart("new", {.order = ColdStart::Order::kNewest, .field = "year"});
  cold.score_threshold = 0.3F;
  cold.diversity = engine::Diversity{0.5F, 4};
  EXPECT_THAT(ResolveNotes(cold),
              ElementsAre("diversity has no effect on a cold start, whose hits have no score",
                          "score_threshold has no effect on a cold start, whose hits have no "
                          "score"));
  EXPECT_THAT(report_.notes, IsEmpty());
}

TEST_F(NotesTest, SayThatNoUserNeededTheColdStart) {
  EXPECT_THAT(ResolveNotes(WithColdStart("user_00042",
                                         {.order = ColdStart::Order::kNewest, .field = "year"})),
              IsEmpty());
  EXPECT_THAT(report_.notes,
              ElementsAre("options.cold_start has no effect: every user has a profile"));
}

TEST_F(NotesTest, SayThatAThresholdIsBeyondEveryScore) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.score_threshold = -1;
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("score_threshold -1 has no effect: no cosine is below -1"));
  request.score_threshold = 1;
  EXPECT_THAT(ResolveNotes(request), IsEmpty());
  request.target = MakeExamples(Strategy::kBestScore, {"heat-1995"}, {});
  request.score_threshold = -2;
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("score_threshold -2 has no effect: no best_score is below -1"));
  request.target = MakeExamples(Strategy::kSumScores, {"heat-1995"}, {});
  EXPECT_THAT(ResolveNotes(request), IsEmpty()) << "a sum has no bound";
}

TEST_F(NotesOfDotTest, LeaveThresholdsOfDotProductsAlone) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  for (const float threshold : {-1.0F, 1.0F, 7.0F}) {
    request.score_threshold = threshold;
    EXPECT_THAT(ResolveNotes(request), IsEmpty());
    EXPECT_EQ(task_.queries[0].score_threshold, threshold);
  }
}

TEST_F(NotesTest, ThresholdsOfCosinesAreComparedUpToTheirRounding) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.score_threshold = 1;
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_LT(task_.queries[0].score_threshold, 1);
  EXPECT_GT(task_.queries[0].score_threshold, 1 - 1e-6F);
  request.score_threshold = -1;
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_TRUE(std::isinf(task_.queries[0].score_threshold));
  request.target = MakeExamples(Strategy::kSumScores, {"heat-1995"}, {});
  request.score_threshold = 1;
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_EQ(task_.queries[0].score_threshold, 1) << "sums are no cosines";
}

TEST_F(NotesTest, SayThatDiversityChoosesNothing) {
  QueryRequest request = Of(ByItem{"heat-1995"});
  request.diversity = engine::Diversity{1, 100};
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("diversity has no effect: with lambda 1 the score alone decides"));
  request.diversity = engine::Diversity{0.5F, 100};
  request.k = 1;
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("diversity has no effect on a single hit, which is "
                          "the best by score"));
}

TEST_F(NotesTest, SayThatWeightsChangeNothing) {
  ByExamples examples = MakeExamples(Strategy::kAverageVector, {"heat-1995", "alien-1979"}, {});
  examples.positive[0].weight = examples.positive[1].weight = 3;
  EXPECT_THAT(ResolveNotes(Of(examples)),
              ElementsAre("examples.positive: weight 3 has no effect: the strategy average_vector "
                          "takes a weighted mean, and all weights are equal"));
  examples.positive[1].weight = 2;
  EXPECT_THAT(ResolveNotes(Of(examples)), IsEmpty());
  examples.positive[0].weight = 2;
  examples.strategy = Strategy::kSumScores;
  EXPECT_THAT(ResolveNotes(Of(examples)), IsEmpty());
  const ByBlend alone{ByItem{"heat-1995"}, ByUser{"user_00042"}, 0};
  EXPECT_THAT(ResolveNotes(Of(alone)),
              ElementsAre("blend: the user's profile has no effect with user_weight 0"));
  const ByBlend user{ByItem{"heat-1995"}, ByUser{"user_00042"}, 1};
  EXPECT_THAT(ResolveNotes(Of(user)),
              ElementsAre("blend: the target has no effect on scores with user_weight 1"));
}

// Five films, of which two have no genre and one an empty list of them.
class NotesOfGroupsTest : public testing::Test {
 protected:
  NotesOfGroupsTest() {
    auto dataset = engine::RandomDataset(5, 3, 7);
    data::PayloadTableBuilder payload(5, Limits{});
    const auto row = [&](PayloadObject object) { EXPECT_TRUE(payload.Add(object).ok()); };
    const auto list = [](std::vector<std::string> texts) {
      PayloadList values;
      for (std::string& text : texts) values.push_back({std::move(text)});
      return PayloadValue{std::move(values)};
    };
    row({{"genres", list({"War", "Drama"})}});
    row({{"genres", list({})}});
    row({{"year", PayloadValue{std::int64_t{1995}}}});
    row({{"genres", list({"Drama"})}});
    row({{"year", PayloadValue{std::int64_t{1979}}}});
    dataset->payload = std::move(payload).Build();
    snapshot_ = engine::MakeSnapshot(std::move(dataset));
  }

  // The notes of a call that may look at rows, or of one that may not.
  std::vector<std::string> ResolveNotes(const QueryRequest& request, bool may_look = true) {
    engine::SearchTask task;
    CallReport report{std::vector<QueryReport>(1), {}};
    base::LongWork work(
        [=] { return may_look ? absl::OkStatus() : absl::CancelledError("looks at rows"); });
    const absl::Status status = ResolveQueries(snapshot_, {&request, 1}, {}, work, task, report);
    EXPECT_TRUE(status.ok()) << status;
    return report.queries[0].notes;
  }

  engine::Snapshot snapshot_;
};

TEST_F(NotesOfGroupsTest, CountTheRowsThatAreInNoGroup) {
  QueryRequest request = Of(ByVector{Kept({1, 0, 0})});
  request.group_by = GroupRequest{"genres"};
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("group_by: 3 of 5 rows that can be returned have no genres "
                          "and are in no group"));
  request.exclude_ids = {"4", "0"};
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("group_by: 2 of 3 rows that can be returned have no genres "
                          "and are in no group"));
  request.exclude_ids.clear();
  request.filter = "year > 1990 OR genres: \"War\"";
  EXPECT_THAT(ResolveNotes(request),
              ElementsAre("group_by: 1 of 2 rows that can be returned has no genres "
                          "and is in no group"));
  request.filter = "genres: \"Drama\"";
  EXPECT_THAT(ResolveNotes(request), IsEmpty());
}

TEST_F(NotesOfGroupsTest, LeaveOutFewExcludedRowsAndMany) {
  constexpr std::size_t kRows = 60;
  auto dataset = engine::RandomDataset(kRows, 3, 7);
  data::PayloadTableBuilder payload(kRows, Limits{});
  for (std::size_t row = 0; row < kRows; ++row) {  // every third one has no genre
    const std::string name = row % 3 == 0 ? "studio" : "genres";
    EXPECT_TRUE(payload.Add({{name, PayloadValue{std::string("War")}}}).ok());
  }
  dataset->payload = std::move(payload).Build();
  snapshot_ = engine::MakeSnapshot(std::move(dataset));
  QueryRequest request = Of(ByVector{Kept({1, 0, 0})});
  request.group_by = GroupRequest{"genres"};
  for (const std::string filter : {"", "studio = \"War\" OR genres = \"War\""}) {
    request.filter = filter;
    request.exclude_ids.clear();
    for (std::size_t excluded = 1; excluded < kRows; ++excluded) {
      request.exclude_ids.push_back(std::to_string(excluded - 1));
      const std::size_t ungrouped = kRows / 3 - (excluded + 2) / 3;
      const std::string count = fmt::format("group_by: {} of {} ", ungrouped, kRows - excluded);
      if (ungrouped == 0) break;
      EXPECT_THAT(ResolveNotes(request), ElementsAre(testing::StartsWith(count)));
    }
  }
}

TEST_F(NotesOfGroupsTest, CountTheRowsOfASnapshotOnce) {
  auto searchable = std::make_shared<RowMask>(5);
  for (const Row row : {0, 1, 3, 4}) searchable->Allow(row);
  snapshot_.searchable = searchable;
  QueryRequest request = Of(ByVector{Kept({1, 0, 0})});
  request.group_by = GroupRequest{"genres"};
  const auto counted = ElementsAre(
      "group_by: 2 of 4 rows that can be returned have no genres "
      "and are in no group");
  EXPECT_THAT(ResolveNotes(request), counted);
  EXPECT_THAT(ResolveNotes(request, false), counted);
  request.exclude_ids = {"2", "4"};
  EXPECT_THAT(ResolveNotes(request, false),
              ElementsAre("group_by: 1 of 3 rows that can be returned has no genres "
                          "and is in no group"));
  // Its rows are those of the first call: a snapshot's never change.
  base::LongWork none([] { return absl::CancelledError("looks at rows"); });
  const auto kept = snapshot_.filters->CountSearchable("genres", nullptr, none);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->rows, 4U);
  EXPECT_EQ(kept->in_groups, 2U);
}

}  // namespace
}  // namespace simile::engine

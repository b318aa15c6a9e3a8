#include "engine/query/unknown_ids.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/query/kept_vector.h"
#include "engine/query/resolve_fixture.h"

namespace simile::engine {
namespace {

using base::ErrorReason;
using testing::EndsWith;
using testing::IsEmpty;
using testing::SizeIs;

class UnknownIdsTest : public ResolveTest {
 protected:
  static QueryRequest Item(const std::string& id) { return Of(ByItem{id}); }
  static QueryRequest User(const std::string& id) { return Of(ByUser{id}); }
};

TEST_F(UnknownIdsTest, AreAllNamedInTheErrorOfACall) {
  ExpectError(Resolve({Item("heat-1995"), Item("zz"), Item("alien-1979"), Item("yy")}),
              ErrorReason::kItemNotFound, "queries[1].id",
              "2 ids are not in films: items \"zz\", \"yy\"");
}

TEST_F(UnknownIdsTest, OfEveryKindAreNamedTogether) {
  const ByExamples examples = MakeExamples(Strategy::kBestScore, {"ex1", "heat-1995"}, {"ex2"});
  const ByBlend blend{ByItem{"bl"}, ByUser{"bu"}, 0.5F};
  ExpectError(Resolve({User("uu"), Of(examples), Item("zz"), Of(blend), User("user_00042")}),
              ErrorReason::kUserNotFound, "queries[0].user_id",
              "6 ids are not in films: items \"ex1\", \"ex2\", \"zz\", \"bl\", users \"uu\", "
              "\"bu\"");
}

TEST_F(UnknownIdsTest, OfOneQuerysExamplesAreAllNamed) {
  const ByExamples examples = MakeExamples(Strategy::kAverageVector, {"ex1", "ex2"}, {"ex3"});
  ExpectError(Resolve({Of(examples)}), ErrorReason::kItemNotFound,
              "queries[0].examples.positive[0].id",
              "3 ids are not in films: items \"ex1\", \"ex2\", \"ex3\"");
}

TEST_F(UnknownIdsTest, OneOfThemIsNamedWithItsPlaceAndTheNearestKnownOne) {
  ExpectError(Resolve({Item("heat-1995"), Item("heat-1996")}), ErrorReason::kItemNotFound,
              "queries[1].id",
              "queries[1]: no item \"heat-1996\" in films. Did you mean \"heat-1995\"?");
  ExpectError(Resolve({Item("zz"), Item("zz")}), ErrorReason::kItemNotFound, "queries[0].id",
              "queries[0]: no item \"zz\" in films");
}

TEST_F(UnknownIdsTest, PastTwentyAreCounted) {
  std::vector<QueryRequest> requests(57);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].target = ByItem{fmt::format("zz{}", i)};
  }
  const absl::Status status = Resolve(requests);
  const std::string message(status.message());
  EXPECT_THAT(message, testing::StartsWith("57 ids are not in films: items \"zz0\", \"zz1\", "));
  EXPECT_THAT(message, EndsWith(", \"zz19\", and 37 more"));
}

TEST_F(UnknownIdsTest, LeaveUsersWithAColdStartOut) {
  ExpectError(Resolve({WithColdStart("uu", {.order = ColdStart::Order::kNewest, .field = "year"}),
                       Item("zz"), Item("yy")}),
              ErrorReason::kItemNotFound, "queries[1].id",
              "2 ids are not in films: items \"zz\", \"yy\"");
}

// A call whose queries fail alone.
class PartialTest : public UnknownIdsTest {
 protected:
  PartialTest() { options_.partial = true; }

  std::string FindMessage(std::size_t query) const {
    return std::string(report_.queries[query].status.message());
  }
};

TEST_F(PartialTest, ResolvesTheQueriesThatCanBeAnswered) {
  ASSERT_TRUE(Resolve({Item("zz"), Item("heat-1995"), Of(ByVector{Kept({1, 0})}),
                       Item("alien-1979"), User("uu")})
                  .ok());
  ASSERT_THAT(task_.queries, SizeIs(2));
  EXPECT_EQ(task_.vectors.row_count(), 2U);
  EXPECT_THAT(Vector(0), testing::ElementsAre(0, 1, 0));
  EXPECT_THAT(Vector(1), testing::ElementsAre(0.6F, 0.8F, 0));
  EXPECT_EQ(FindMessage(0), "no item \"zz\" in films");
  EXPECT_EQ(base::FieldOf(report_.queries[0].status), "queries[0].id");
  EXPECT_TRUE(report_.queries[1].status.ok());
  EXPECT_EQ(FindMessage(2),
            "vector holds 2 dimensions, films has 3; a vector from another model cannot be "
            "compared");
  EXPECT_EQ(base::FieldOf(report_.queries[4].status), "queries[4].user_id");
}

TEST_F(PartialTest, KeepsTheVectorsOfExamplesApart) {
  const ByExamples good = MakeExamples(Strategy::kBestScore, {"heat-1995", "alien-1979"}, {});
  const ByExamples bad = MakeExamples(Strategy::kBestScore, {"heat-1995", "zz", "yy"}, {});
  ASSERT_TRUE(Resolve({Of(bad), Of(good), Of(bad), Item("stalker-1979")}).ok());
  ASSERT_THAT(task_.queries, SizeIs(2));
  EXPECT_EQ(task_.vectors.row_count(), 3U);
  EXPECT_THAT(Vector(0), testing::ElementsAre(0, 1, 0));
  EXPECT_THAT(Vector(1), testing::ElementsAre(0.6F, 0.8F, 0));
  EXPECT_THAT(Vector(2), testing::ElementsAre(0, 0.6F, 0.8F));
  EXPECT_EQ(FindMessage(0), "2 ids are not in films: items \"zz\", \"yy\"");
}

TEST_F(PartialTest, MayLeaveNoQuery) {
  ASSERT_TRUE(Resolve({Item("zz"), User("uu")}).ok());
  EXPECT_THAT(task_.queries, IsEmpty());
  EXPECT_EQ(task_.vectors.row_count(), 0U);
}

TEST_F(PartialTest, RefusesAFilterOfOneQuery) {
  QueryRequest bad = Item("heat-1995");
  bad.filter = "yeah > 3";
  QueryRequest good = Item("heat-1995");
  good.filter = "year > 3";
  ASSERT_TRUE(Resolve({bad, good, bad}).ok());
  EXPECT_THAT(task_.queries, SizeIs(1));
  EXPECT_EQ(base::ReasonOf(report_.queries[2].status), ErrorReason::kInvalidFilter);
  EXPECT_EQ(base::FieldOf(report_.queries[2].status), "queries[2].filter");
  EXPECT_EQ(FindMessage(0), FindMessage(2));
}

TEST_F(PartialTest, FailsOfWhatIsWrongWithTheOptions) {
  QueryRequest query = Item("heat-1995");
  query.filter = "yeah > 3";
  query.filter_is_default = true;
  const absl::Status status = Resolve({query, Item("heat-1995")});
  EXPECT_EQ(base::FieldOf(status), "options.filter");
}

TEST_F(PartialTest, SaysOfEachQueryWhatItWouldBeToldAlone) {
  const ByExamples examples = MakeExamples(Strategy::kAverageVector, {"heat-1996"}, {"zz"});
  QueryRequest grouped = Item("heat-1995");
  grouped.group_by = GroupRequest{"years"};
  const std::vector<QueryRequest> requests{Item("heat-1996"),
                                           User("user_00043"),
                                           Of(ByVector{Kept({0, 0, 0})}),
                                           Of(examples),
                                           Of(ByBlend{ByItem{"zz"}, ByUser{"uu"}, 0.5F}),
                                           grouped};
  ASSERT_TRUE(Resolve(requests).ok());
  const CallReport together = report_;
  options_.partial = false;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const absl::Status alone = Resolve({requests[i]});
    ASSERT_FALSE(alone.ok()) << i;
    EXPECT_EQ(together.queries[i].status.message(), alone.message()) << i;
    EXPECT_EQ(base::ReasonOf(together.queries[i].status), base::ReasonOf(alone)) << i;
  }
}

TEST_F(PartialTest, TellsHiddenItemsNoOtherThanUnknownOnes) {
  options_.required_filters.of_request = "year = 1979";
  ASSERT_TRUE(Resolve({Item("heat-1995"), Item("heat-1994"), Item("alien-1979")}).ok());
  EXPECT_EQ(FindMessage(0), "no item \"heat-1995\" in films");
  EXPECT_EQ(FindMessage(1), "no item \"heat-1994\" in films");
  EXPECT_THAT(task_.queries, SizeIs(1));
  options_.partial = false;
  EXPECT_EQ(std::string(Resolve({Item("heat-1995"), Item("heat-1994")}).message()),
            "2 ids are not in films: items \"heat-1995\", \"heat-1994\"");
}

}  // namespace
}  // namespace simile::engine

#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/query/kept_vector.h"
#include "engine/query/resolve_fixture.h"

namespace simile::engine {
namespace {

using base::ErrorReason;
using testing::ElementsAre;
using testing::IsEmpty;

// Calls whose required filter only the two films of 1979 pass, rows 2 and 3.
class RequiredFilterTest : public ResolveTest {
 protected:
  RequiredFilterTest() { options_.required_filters.of_request = "year < 1990"; }

  static QueryRequest ByAVector(std::string_view filter) {
    QueryRequest request = Of(ByVector{Kept({1, 0, 0})});
    request.filter = filter;
    return request;
  }
};

TEST_F(RequiredFilterTest, IsJoinedWithEveryQuerysFilter) {
  ASSERT_TRUE(Resolve({ByAVector(""), ByAVector("year = 1995"), ByAVector("id = \"alien-1979\""),
                       ByAVector(""), ByAVector("year = 1995")})
                  .ok());
  for (const engine::ResolvedQuery& query : task_.queries) ASSERT_NE(query.mask, nullptr);
  EXPECT_EQ(task_.queries[0].mask->AllowedCount(), 2U);
  EXPECT_TRUE(task_.queries[0].mask->Allows(2));
  EXPECT_EQ(task_.queries[1].mask->AllowedCount(), 0U);
  EXPECT_EQ(task_.queries[2].mask->AllowedCount(), 1U);
  EXPECT_TRUE(task_.queries[2].mask->Allows(2));
  EXPECT_EQ(task_.queries[3].mask, task_.queries[0].mask);
  EXPECT_EQ(task_.queries[4].mask, task_.queries[1].mask) << "made once for the call";
  for (const engine::ResolvedQuery& query : task_.queries) {
    EXPECT_EQ(query.existing, task_.queries[0].mask);
  }
}

TEST_F(RequiredFilterTest, HidesItemsThatDoNotPass) {
  ASSERT_TRUE(Resolve({Of(ByItem{"alien-1979"})}).ok());
  // The same message as for an item that nobody has, and nothing offered in its place.
  ExpectError(Resolve({Of(ByItem{"heat-1995"})}), ErrorReason::kItemNotFound, "queries[0].id",
              "no item \"heat-1995\" in films");
  ExpectError(Resolve({Of(ByItem{"heat-199"})}), ErrorReason::kItemNotFound, "queries[0].id",
              "no item \"heat-199\" in films");
  for (const Strategy strategy :
       {Strategy::kAverageVector, Strategy::kBestScore, Strategy::kSumScores}) {
    ExpectError(Resolve({Of(MakeExamples(strategy, {"alien-1979"}, {"heat-1995"}))}),
                ErrorReason::kItemNotFound, "queries[0].examples.negative[0].id",
                "examples.negative[0]: no item \"heat-1995\" in films");
  }
  ExpectError(Resolve({Of(ByBlend{ByItem{"heat-1995"}, ByUser{"user_00042"}})}),
              ErrorReason::kItemNotFound, "queries[0].blend.id",
              "blend: no item \"heat-1995\" in films");
}

TEST_F(RequiredFilterTest, OffersNoUserEither) {
  ExpectError(Resolve({Of(ByUser{"user_42"})}), ErrorReason::kUserNotFound, "queries[0].user_id",
              "no user \"user_42\" in films");
}

TEST_F(RequiredFilterTest, AppliesToAColdStart) {
  QueryRequest request = WithColdStart("nobody", {});
  ASSERT_TRUE(Resolve({request}).ok());
  EXPECT_THAT(FirstRows(task_.queries[0]), ElementsAre(2, 3));
}

TEST_F(RequiredFilterTest, NamesItsErrorAndItsColumn) {
  options_.required_filters.of_request = "yeer < 1990";
  ExpectError(Resolve({ByAVector("")}), ErrorReason::kInvalidFilter, "options.required_filter",
              "options.required_filter, column 1: films has no field \"yeer\". Did you mean "
              "\"year\"? Fields: year.");
  options_.required_filters.of_request = " ";
  EXPECT_EQ(base::ReasonOf(Resolve({ByAVector("")})), ErrorReason::kInvalidFilter)
      << "never taken for no filter";
}

TEST_F(RequiredFilterTest, ComparesWholeValues) {
  data::PayloadTableBuilder builder(4, Limits{});
  for (const char* const country : {"DE", "SWEDEN", "DENMARK", "AT"})
    ASSERT_TRUE(builder.Add({{"country", {std::string(country)}}}).ok());
  dataset_->payload = std::move(builder).Build();
  snapshot_ = engine::MakeSnapshot(dataset_);
  options_ = {};
  // As a filter of a query it is taken, and its rows are then cached.
  ASSERT_TRUE(Resolve({ByAVector("country:DE")}).ok());
  options_.required_filters.of_request = "country:DE";
  ExpectError(Resolve({ByAVector("")}), ErrorReason::kInvalidFilter, "options.required_filter",
              "options.required_filter, column 1: country:DE also passes texts that only contain "
              "the value, and a required filter must compare whole values; write country = DE, "
              "which asks a list for an element");
  options_.required_filters = {.of_request = {}, .of_caller = "country:DE"};
  EXPECT_EQ(base::ReasonOf(Resolve({ByAVector("")})), ErrorReason::kPermissionDenied);
  options_.required_filters = {.of_request = "country = DE", .of_caller = "has(country)"};
  ASSERT_TRUE(Resolve({ByAVector("")}).ok());
  EXPECT_EQ(task_.queries[0].mask->AllowedCount(), 1U);
}

TEST_F(RequiredFilterTest, IsNotEvaluatedForACallThatIsOver) {
  task_.deadline = clock_.Now();
  ExpectError(Resolve({ByAVector("")}), ErrorReason::kDeadlineExceeded, "",
              "the deadline passed before the filters were evaluated");
}

// Calls for which one of the two users exists, user_00042, who has seen rows 1 and 3. The other one
// has seen row 2.
class UserScopeTest : public ResolveTest {
 protected:
  UserScopeTest() {
    dataset_->profiles.seen = data::SeenSets::FromPairs(2, {{0, 3}, {0, 1}, {1, 2}});
    std::vector<std::uint32_t> counts(4);
    dataset_->profiles.seen.AddCounts(counts);
    dataset_->profiles.most_seen = data::SeenSets::ByCount(counts);
    options_.required_filters.users = data::UserScope::Of({"user_0004"}, {});
  }

  static QueryRequest Popular(const std::string& user) {
    return WithColdStart(user, {.order = ColdStart::Order::kMostPopular, .field = {}});
  }
};

TEST_F(UserScopeTest, FindsTheCallersUsers) {
  ASSERT_TRUE(Resolve({Of(ByUser{"user_00042", true})}).ok());
  EXPECT_THAT(Vector(0), ElementsAre(0, 0.8F, 0.6F));
  EXPECT_THAT(task_.queries[0].excluded_rows, ElementsAre(1, 3));
  EXPECT_TRUE(Resolve({Of(ByBlend{ByItem{"heat-1995"}, ByUser{"user_00042"}})}).ok());
}

// A visitor of the caller's has seen row 0, one of others has seen row 3.
TEST_F(UserScopeTest, ExcludesWhatTheCallersVisitorsHaveSeen) {
  dataset_->profiles.visitor_ids = engine::MakeIds({"user_00043", "user_00050"});
  dataset_->profiles.visitor_seen = data::SeenSets::FromPairs(2, {{0, 0}, {1, 3}});
  const auto excluded = [this](const std::string& user) {
    QueryRequest request = Popular(user);
    std::get<ByUser>(request.target).exclude_seen = true;
    EXPECT_TRUE(Resolve({request}).ok());
    return task_.queries[0].excluded_rows;
  };
  EXPECT_THAT(excluded("user_00043"), ElementsAre(0));
  EXPECT_THAT(report_.queries[0].notes, IsEmpty());
  EXPECT_THAT(excluded("user_00050"), IsEmpty());
  EXPECT_THAT(report_.queries[0].notes,
              ElementsAre("exclude_seen has no effect: no interactions of the user are known"));
  options_.required_filters.users = {};
  EXPECT_THAT(excluded("user_00050"), ElementsAre(3));
  ExpectError(Resolve({Of(ByUser{"user_00043", true})}), ErrorReason::kUserNotFound,
              "queries[0].user_id",
              "no user \"user_00043\" in films. Did you mean \"user_00042\"?");
}

// In the words for a user that exists nowhere, and no other user is offered.
TEST_F(UserScopeTest, HidesTheUsersOfOthers) {
  const auto refusal = [&](const data::UserScope& users, const std::string& user) {
    options_.required_filters.users = users;
    return std::string(Resolve({Of(ByUser{user})}).message());
  };
  const data::UserScope own = data::UserScope::Of({"user_0004"}, {});
  EXPECT_EQ(refusal(own, "user_00007"), "no user \"user_00007\" in films");
  EXPECT_EQ(refusal(own, "user_00043"), "no user \"user_00043\" in films");
  EXPECT_EQ(refusal(data::UserScope::None(), "user_00042"), "no user \"user_00042\" in films");
  ExpectError(Resolve({Of(ByBlend{ByItem{"heat-1995"}, ByUser{"user_00007"}})}),
              ErrorReason::kUserNotFound, "queries[0].blend.user_id",
              "blend: no user \"user_00007\" in films");
  // Nor does it tell whether the collection has users.
  dataset_->profiles = {};
  snapshot_ = engine::MakeSnapshot(dataset_);
  EXPECT_EQ(refusal(own, "user_00042"), "no user \"user_00042\" in films");
}

TEST_F(UserScopeTest, OffersItemsAsBefore) {
  ExpectError(Resolve({Of(ByItem{"heat-199"})}), ErrorReason::kItemNotFound, "queries[0].id",
              "no item \"heat-199\" in films. Did you mean \"heat-1995\"?");
}

TEST_F(UserScopeTest, AnswersForUsersOfOthersAsForUnknownOnes) {
  ASSERT_TRUE(Resolve({WithColdStart("user_00007", {}), WithColdStart("nobody", {}),
                       WithColdStart("user_00042", {})})
                  .ok());
  EXPECT_EQ(task_.vectors.row_count(), 1U);
  EXPECT_THAT(FirstRows(task_.queries[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(FirstRows(task_.queries[1]), ElementsAre(0, 1, 2));
  EXPECT_THAT(task_.queries[0].excluded(), testing::IsEmpty());
  EXPECT_FALSE(task_.queries[2].order.has_value());
}

TEST_F(UserScopeTest, CountsTheClicksOfTheCallersUsers) {
  const auto popular = [&](const data::UserScope& users) {
    options_.required_filters.users = users;
    EXPECT_TRUE(Resolve({Popular("user_00007x")}).ok());
    return FirstRows(task_.queries[0]);
  };
  EXPECT_THAT(popular(data::UserScope()), ElementsAre(1, 2, 3));
  EXPECT_THAT(popular(data::UserScope::Of({"user_0004"}, {})), ElementsAre(1, 3, 0));
  EXPECT_THAT(popular(data::UserScope::Of({}, {"user_00007"})), ElementsAre(2, 0, 1));
  options_.required_filters.users = data::UserScope::None();
  ExpectError(Resolve({Popular("nobody")}), ErrorReason::kInvalidField, "options.cold_start",
              "cold_start: films has no interactions to tell what is popular; name a field; fields "
              "with an order: year");
}

}  // namespace
}  // namespace simile::engine

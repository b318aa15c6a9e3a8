#include "data/load/user_scope.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unasked_work.h"

namespace simile::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

UserScope Beginning(const std::string& prefix) { return UserScope::Of({prefix}, {}); }

TEST(UserScopeTest, HasTheUsersOfItsRule) {
  EXPECT_TRUE(UserScope().is_all());
  EXPECT_TRUE(UserScope().Has("anyone"));
  EXPECT_FALSE(UserScope::None().is_all());
  EXPECT_FALSE(UserScope::None().Has("anyone"));
  EXPECT_FALSE(UserScope::None().Has(""));
  const UserScope scope = UserScope::Of({"acme-", "ac/"}, {"guest", "guest", "7"});
  for (const char* const user : {"acme-1", "acme-", "ac/x", "guest", "7"})
    EXPECT_TRUE(scope.Has(user)) << user;
  // Byte for byte: no letter case, no other spelling, no part.
  for (const char* const user : {"", "acme", "ACME-1", "ｇuest", "guest ", "gues", "guest2", "77"})
    EXPECT_FALSE(scope.Has(user)) << user;
  EXPECT_THAT(scope.prefixes(), ElementsAre("ac/", "acme-"));
  EXPECT_THAT(scope.ids(), ElementsAre("7", "guest"));
}

TEST(UserScopeTest, EqualsAnotherOfTheSameRule) {
  EXPECT_EQ(UserScope::Of({"a", "b"}, {"x"}), UserScope::Of({"b", "a", "b"}, {"x"}));
  EXPECT_NE(UserScope::Of({"a"}, {}), UserScope::Of({}, {"a"}));
  EXPECT_NE(UserScope::Of({"a"}, {}), UserScope());
  EXPECT_NE(UserScope::None(), UserScope());
}

// Users of two tenants and the items that they have seen: 0 and 2 are a's, 1 is b's, 3 is nobody's.
class UserSubsetsTest : public testing::Test {
 protected:
  UserSubsetsTest() {
    dataset_ = std::make_shared<Dataset>();
    IdIndex::Builder ids(4);
    for (const char* const id : {"a-0", "b-1", "a-2", "other"}) EXPECT_TRUE(ids.Add(id).ok());
    dataset_->profiles.ids = std::move(ids).Build();
    dataset_->profiles.seen =
        SeenSets::FromPairs(4, {{0, 1}, {0, 3}, {1, 0}, {1, 2}, {2, 3}, {3, 0}, {3, 2}});
    dataset_->vectors = Matrix::Create(5, 2).value();
    std::vector<std::uint32_t> counts(5);
    dataset_->profiles.seen.AddCounts(counts);
    dataset_->profiles.most_seen = SeenSets::ByCount(counts);
  }

  UserSubset Of(const UserScope& scope) {
    base::LongWork work = tests::UnaskedWork();
    return subsets_.Of(scope, dataset_, work).value();
  }
  std::vector<Row> MostSeen(const UserScope& scope) { return *Of(scope).most_seen; }

  std::shared_ptr<Dataset> dataset_;
  UserSubsets subsets_;
};

TEST_F(UserSubsetsTest, CountsTheUsersOfAScope) {
  EXPECT_EQ(Of(UserScope()).user_count, 4U);
  EXPECT_EQ(Of(Beginning("a-")).user_count, 2U);
  EXPECT_EQ(Of(UserScope::Of({"a-"}, {"a-0", "other", "gone"})).user_count, 3U);
  EXPECT_EQ(Of(UserScope::Of({}, {"a-0", "gone"})).user_count, 1U);
  EXPECT_EQ(Of(UserScope::None()).user_count, 0U);
}

TEST_F(UserSubsetsTest, CountsWhatTheUsersOfAScopeHaveSeen) {
  EXPECT_EQ(Of(UserScope()).pair_count, 7U);
  EXPECT_EQ(Of(Beginning("a-")).pair_count, 3U);
  EXPECT_EQ(Of(UserScope::None()).pair_count, 0U);
}

TEST_F(UserSubsetsTest, OrdersItemsByHowManyOfTheUsersHaveSeenThem) {
  EXPECT_THAT(MostSeen(UserScope()), ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(MostSeen(Beginning("a-")), ElementsAre(3, 1));
  EXPECT_THAT(MostSeen(Beginning("b-")), ElementsAre(0, 2));
  EXPECT_THAT(MostSeen(UserScope::None()), IsEmpty());
}

TEST_F(UserSubsetsTest, CountsTheVisitorsOfAScope) {
  IdIndex::Builder ids(3);
  for (const char* const id : {"a-guest", "b-guest", "c-guest"}) EXPECT_TRUE(ids.Add(id).ok());
  dataset_->profiles.visitor_ids = std::move(ids).Build();
  dataset_->profiles.visitor_seen = SeenSets::FromPairs(3, {{0, 1}, {0, 4}, {1, 2}, {2, 4}});
  EXPECT_THAT(MostSeen(Beginning("a-")), ElementsAre(1, 3, 4));
  EXPECT_THAT(MostSeen(Beginning("b-")), ElementsAre(2, 0));
  EXPECT_THAT(MostSeen(Beginning("c-")), ElementsAre(4)) << "a scope without users";
  EXPECT_EQ(Of(Beginning("a-")).user_count, 2U);
  EXPECT_EQ(Of(Beginning("a-")).pair_count, 3U);
}

TEST_F(UserSubsetsTest, KeepsASubsetForScopesOfTheSameRule) {
  const UserSubset first = Of(Beginning("a-"));
  const std::uint64_t bytes = subsets_.bytes();
  EXPECT_GT(bytes, 0U);
  EXPECT_EQ(Of(Beginning("a-")).most_seen, first.most_seen);
  EXPECT_NE(Of(Beginning("b-")).most_seen, first.most_seen);
  EXPECT_GT(subsets_.bytes(), bytes);
}

TEST_F(UserSubsetsTest, DropsTheSubsetThatWasUsedLeastRecently) {
  static_cast<void>(Of(Beginning("a-")));
  UserSubsets two(2 * subsets_.bytes() + 16);
  base::LongWork work = tests::UnaskedWork();
  const auto list = [&](const std::string& prefix) {
    return two.Of(Beginning(prefix), dataset_, work).value().most_seen;
  };
  const auto of_a = list("a-");
  const auto of_b = list("b-");
  EXPECT_EQ(list("a-"), of_a);
  const auto of_c = list("c-");
  EXPECT_EQ(list("a-"), of_a);
  EXPECT_NE(list("b-"), of_b) << "dropped for the third";
  EXPECT_LE(two.bytes(), 2 * subsets_.bytes() + 16);
}

TEST_F(UserSubsetsTest, EndsWithItsWork) {
  base::LongWork over([] { return absl::CancelledError("over"); });
  auto many = std::make_shared<Dataset>();
  many->profiles.ids = IdIndex::OfRowNumbers(200'000);
  EXPECT_EQ(subsets_.Of(Beginning("1"), many, over).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace simile::data

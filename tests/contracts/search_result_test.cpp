#include <gtest/gtest.h>

#include "simile/hits.h"

namespace simile {
namespace {

TEST(SearchResultTest, IsEmptyAfterReset) {
  SearchResult result;
  result.Reset(3, 10);
  EXPECT_EQ(result.batch(), 3U);
  for (std::size_t query = 0; query < 3; ++query) {
    EXPECT_TRUE(result.Hits(query).empty());
    EXPECT_EQ(result.Buffer(query).size(), 10U);
    EXPECT_EQ(result.Cost(query).rows_scanned, 0U);
  }
}

TEST(SearchResultTest, KeepsTheQueriesApart) {
  SearchResult result;
  result.Reset(2, 2);
  result.Buffer(0)[0] = {7, 0.5F};
  result.SetCount(0, 1);
  result.Buffer(1)[0] = {8, 0.4F};
  result.Buffer(1)[1] = {9, 0.3F};
  result.SetCount(1, 2);
  result.SetCost(1, {.rows_scanned = 100, .rows_rescored = 5});
  ASSERT_EQ(result.Hits(0).size(), 1U);
  EXPECT_EQ(result.Hits(0)[0], (Hit{7, 0.5F}));
  ASSERT_EQ(result.Hits(1).size(), 2U);
  EXPECT_EQ(result.Hits(1)[1], (Hit{9, 0.3F}));
  EXPECT_EQ(result.Cost(0).rows_rescored, 0U);
  EXPECT_EQ(result.Cost(1).rows_rescored, 5U);
}

TEST(SearchResultTest, ForgetsTheLastBatchOnReset) {
  SearchResult result;
  result.Reset(2, 5);
  result.SetCount(1, 5);
  result.SetCost(1, {.rows_scanned = 1, .rows_rescored = 1});
  result.Reset(2, 3);
  EXPECT_TRUE(result.Hits(1).empty());
  EXPECT_EQ(result.Buffer(1).size(), 3U);
  EXPECT_EQ(result.Cost(1).rows_scanned, 0U);
}

TEST(SearchResultTest, HasSpaceForEachQuerysOwnHits) {
  SearchResult result;
  std::vector<QuerySpec> specs(3);
  specs[0].k = 2;
  specs[1].k = 10'000;
  specs[2].k = 1;
  result.Reset(specs, 50);
  EXPECT_EQ(result.Buffer(0).size(), 2U);
  EXPECT_EQ(result.Buffer(1).size(), 50U) << "there are no more rows";
  EXPECT_EQ(result.Buffer(2).size(), 1U);
  EXPECT_EQ(result.Buffer(2).data(), result.Buffer(0).data() + 52);
}

TEST(SearchResultTest, KeepsItsBufferUnlessItWasMuchTooLarge) {
  SearchResult result;
  result.Reset(2, 1'000);
  const Hit* const first = result.Buffer(0).data();
  result.Reset(1, 10);
  EXPECT_EQ(result.Buffer(0).data(), first);
  result.Reset(100, 10'000);
  const Hit* const large = result.Buffer(0).data();
  result.Reset(50, 10'000);
  EXPECT_EQ(result.Buffer(0).data(), large) << "half of it is in use";
  result.Reset(1, 10);
  EXPECT_LT(result.buffer_bytes(), 1U << 20);
}

TEST(SearchResultTest, HoldsNoHitsWhenNoneAreWanted) {
  SearchResult result;
  result.Reset(2, 0);
  EXPECT_TRUE(result.Hits(1).empty());
  result.Reset(0, 10);
  EXPECT_EQ(result.batch(), 0U);
}

TEST(HitTest, RanksByItsScoreAndRow) {
  EXPECT_GT(ToRankKey({3, 0.5F}), ToRankKey({2, 0.4F}));
  EXPECT_GT(ToRankKey({2, 0.5F}), ToRankKey({3, 0.5F}));
}

}  // namespace
}  // namespace simile

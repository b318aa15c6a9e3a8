#include "data/seen_sets.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SeenSetsTest, SortsAndKeepsEachPairOnce) {
  const SeenSets sets = SeenSets::FromPairs(4, {{2, 9}, {0, 5}, {2, 1}, {2, 9}, {0, 4}, {3, 0}});
  EXPECT_THAT(sets.Of(0), ElementsAre(4, 5));
  EXPECT_THAT(sets.Of(1), IsEmpty());
  EXPECT_THAT(sets.Of(2), ElementsAre(1, 9));
  EXPECT_THAT(sets.Of(3), ElementsAre(0));
  EXPECT_EQ(sets.pair_count(), 5U);
  EXPECT_EQ(sets.bytes(), 4 * sizeof(std::uint64_t) + 5 * sizeof(Row));
}

TEST(SeenSetsTest, OrdersItemsByTheirNumberOfUsers) {
  const SeenSets sets =
      SeenSets::FromPairs(3, {{0, 7}, {1, 7}, {2, 7}, {0, 2}, {1, 2}, {2, 5}, {0, 5}, {1, 9}});
  std::vector<std::uint32_t> counts(10);
  EXPECT_THAT(SeenSets::ByCount(counts), IsEmpty());
  sets.AddCounts(counts);
  EXPECT_THAT(SeenSets::ByCount(counts), ElementsAre(7, 2, 5, 9)) << "equal ones by row";
  counts[9] += 3;
  EXPECT_THAT(SeenSets::ByCount(counts), ElementsAre(9, 7, 2, 5));
}

TEST(SeenSetsTest, IsEmptyForAnyoneWithoutInteractions) {
  EXPECT_THAT(SeenSets().Of(17), IsEmpty());
  const SeenSets sets = SeenSets::FromPairs(2, {});
  EXPECT_THAT(sets.Of(1), IsEmpty());
  EXPECT_EQ(sets.pair_count(), 0U);
}

}  // namespace
}  // namespace simile::data

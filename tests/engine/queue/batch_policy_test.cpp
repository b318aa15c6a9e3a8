#include "engine/queue/batch_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kSnapshots[2] = {};
const void* const kOne = &kSnapshots[0];
const void* const kTwo = &kSnapshots[1];

std::vector<std::size_t> Choose(const std::vector<Waiting>& waiting, std::uint32_t most) {
  std::vector<std::size_t> taken{99};  // of an earlier batch
  ChooseBatch(waiting, most, taken);
  return taken;
}

TEST(BatchPolicyTest, TakesNothingWhenNothingWaits) { EXPECT_THAT(Choose({}, 8), IsEmpty()); }

TEST(BatchPolicyTest, TakesALoneTaskAtOnce) { EXPECT_THAT(Choose({{kOne, 1}}, 8), ElementsAre(0)); }

TEST(BatchPolicyTest, TakesAllOfOneSnapshotWhenTheyFitExactly) {
  EXPECT_THAT(Choose({{kOne, 3}, {kOne, 4}, {kOne, 1}}, 8), ElementsAre(0, 1, 2));
}

TEST(BatchPolicyTest, StopsBeforeTheTaskThatWouldNotFit) {
  EXPECT_THAT(Choose({{kOne, 3}, {kOne, 6}}, 8), ElementsAre(0));
}

TEST(BatchPolicyTest, DoesNotLetASmallTaskOvertakeALargeOne) {
  EXPECT_THAT(Choose({{kOne, 3}, {kOne, 6}, {kOne, 1}}, 8), ElementsAre(0));
}

TEST(BatchPolicyTest, LeavesOtherSnapshotsWhereTheyAre) {
  EXPECT_THAT(Choose({{kOne, 1}, {kTwo, 1}, {kOne, 1}, {kTwo, 1}}, 8), ElementsAre(0, 2));
}

TEST(BatchPolicyTest, FollowsTheOldestTaskAndNotTheLargestGroup) {
  EXPECT_THAT(Choose({{kTwo, 1}, {kOne, 1}, {kOne, 1}}, 8), ElementsAre(0));
}

TEST(BatchPolicyTest, DoesNotCountOtherSnapshotsAgainstTheBatch) {
  EXPECT_THAT(Choose({{kOne, 4}, {kTwo, 8}, {kOne, 4}}, 8), ElementsAre(0, 2));
}

TEST(BatchPolicyTest, TakesTheOldestTaskEvenWhenItAloneExceedsTheBatch) {
  EXPECT_THAT(Choose({{kOne, 9}, {kOne, 1}}, 8), ElementsAre(0));
}

TEST(BatchPolicyTest, CountsWithoutOverflow) {
  EXPECT_THAT(Choose({{kOne, 0xffffffffU}, {kOne, 2}}, 0xffffffffU), ElementsAre(0));
}

}  // namespace
}  // namespace simile::engine

#include "app/load_progress.h"

#include <gtest/gtest.h>

namespace simile::app {
namespace {

using engine::ChangeProgress;
using engine::CollectionState;
using engine::CollectionStatus;

CollectionStatus Films(CollectionState state, double share) {
  ChangeProgress progress;
  progress.share = share;
  return {"films", state, progress, nullptr};
}
CollectionStatus Loading(double share) { return Films(CollectionState::kLoading, share); }

TEST(ProgressTextTest, ShowsTheCollectionThatLoads) {
  EXPECT_EQ(ProgressText({{"books", CollectionState::kServing, {}, nullptr}, Loading(0.5)}),
            "films |###############---------------| 50 %");
  EXPECT_EQ(ProgressText({Loading(0)}), "films |------------------------------| 0 %");
  EXPECT_EQ(ProgressText({Loading(1)}), "films |##############################| 100 %");
}

TEST(ProgressTextTest, IsEmptyWhenNothingLoads) {
  EXPECT_EQ(ProgressText({}), "");
  EXPECT_EQ(ProgressText({Films(CollectionState::kReloading, 0.5)}), "");
}

}  // namespace
}  // namespace simile::app

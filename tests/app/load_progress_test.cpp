#include "app/load_progress.h"

#include <gtest/gtest.h>

namespace simile::app {
namespace {

using engine::CollectionState;

TEST(ProgressTextTest, ShowsTheCollectionThatLoads) {
  EXPECT_EQ(ProgressText({{"books", CollectionState::kServing, 0, nullptr},
                          {"films", CollectionState::kLoading, 0.5, nullptr}}),
            "films |###############---------------| 50 %");
  EXPECT_EQ(ProgressText({{"films", CollectionState::kLoading, 0, nullptr}}),
            "films |------------------------------| 0 %");
  EXPECT_EQ(ProgressText({{"films", CollectionState::kLoading, 1, nullptr}}),
            "films |##############################| 100 %");
}

TEST(ProgressTextTest, IsEmptyWhenNothingLoads) {
  EXPECT_EQ(ProgressText({}), "");
  EXPECT_EQ(ProgressText({{"films", CollectionState::kReloading, 0.5, nullptr}}), "");
}

}  // namespace
}  // namespace simile::app

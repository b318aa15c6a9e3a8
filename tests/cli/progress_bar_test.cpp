#include "cli/progress_bar.h"

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

TEST(ProgressBarTest, DrawsTheFractionDone) {
  EXPECT_EQ(BarText(0, 10), "|----------| 0 %");
  EXPECT_EQ(BarText(0.55, 10), "|#####-----| 55 %");
  EXPECT_EQ(BarText(1, 10), "|##########| 100 %");
}

TEST(ProgressBarTest, StaysWithinItsWidth) {
  EXPECT_EQ(BarText(-1, 4), "|----| 0 %");
  EXPECT_EQ(BarText(7, 4), "|####| 100 %");
}

}  // namespace
}  // namespace simile::cli

#include "cli/progress.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

TEST(ChangeProgressTextTest, NamesTheFileAndItsBytesWhileItReads) {
  v1::ChangeProgress progress;
  EXPECT_EQ(ProgressText(progress), "");
  progress.set_stage(v1::ChangeProgress::STAGE_READING);
  EXPECT_EQ(ProgressText(progress), "reading");
  progress.set_file("content_vectors.npy");
  EXPECT_EQ(ProgressText(progress), "reading content_vectors.npy");
  progress.set_bytes_read(1 << 20);
  progress.set_bytes_total(3 << 20);
  EXPECT_EQ(ProgressText(progress), "reading 1.0 MiB of 3.0 MiB, content_vectors.npy");
}

TEST(ChangeProgressTextTest, LinesOfALogHaveTheShare) {
  v1::ChangeProgress progress;
  progress.set_share(0.404);
  EXPECT_EQ(ProgressLine("loading films", progress), "loading films: 40 %");
  progress.set_stage(v1::ChangeProgress::STAGE_VERIFYING);
  EXPECT_EQ(ProgressLine("loading films", progress), "loading films: 40 %, verifying");
}

TEST(ChangeProgressTextTest, JsonHasEverything) {
  v1::ChangeProgress progress;
  progress.set_stage(v1::ChangeProgress::STAGE_READING);
  progress.set_file("a.npy");
  progress.set_share(0.5);
  progress.set_bytes_read(1);
  progress.set_bytes_total(2);
  EXPECT_EQ(ProgressJson(progress).dump(),
            R"({"stage":"reading","file":"a.npy","share":0.5,"bytes_read":1,"bytes_total":2})");
}

TEST(ChangeProgressTextTest, NamesTheOtherStages) {
  v1::ChangeProgress progress;
  progress.set_stage(v1::ChangeProgress::STAGE_WAITING);
  EXPECT_EQ(ProgressText(progress), "waiting for other changes");
  progress.set_stage(v1::ChangeProgress::STAGE_INDEXING);
  progress.set_bytes_total(3 << 20);
  EXPECT_EQ(ProgressText(progress), "indexing");
  progress.set_stage(v1::ChangeProgress::STAGE_VERIFYING);
  EXPECT_EQ(ProgressText(progress), "verifying");
}

}  // namespace
}  // namespace simile::cli

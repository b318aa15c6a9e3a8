#include "base/long_work.h"

#include <gtest/gtest.h>

namespace simile::base {
namespace {

TEST(LongWorkTest, AsksAfterEachPiece) {
  int asked = 0;
  LongWork work([&asked] {
    ++asked;
    return absl::OkStatus();
  });
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(work.Did(1'000).ok());
  EXPECT_EQ(asked, 10) << "once a millisecond";
  EXPECT_FALSE(work.is_too_long());
}

TEST(LongWorkTest, AsksAtOnceWhenTold) {
  int asked = 0;
  LongWork work([&asked] {
    ++asked;
    return absl::OkStatus();
  });
  EXPECT_TRUE(work.Ask().ok());
  EXPECT_EQ(asked, 1);
}

TEST(LongWorkTest, EndsWithTheErrorItGets) {
  LongWork work([] { return absl::CancelledError("gone"); });
  EXPECT_TRUE(work.Did(1'000).ok());
  EXPECT_EQ(work.Did(1'000'000).code(), absl::StatusCode::kCancelled);
}

TEST(LongWorkTest, EndsBriefWorkThatIsTooLong) {
  LongWork work = LongWork::Brief();
  EXPECT_TRUE(work.Did(100'000).ok());
  EXPECT_FALSE(work.is_too_long());
  EXPECT_FALSE(work.Did(100'000).ok());
  EXPECT_TRUE(work.is_too_long());
}

}  // namespace
}  // namespace simile::base

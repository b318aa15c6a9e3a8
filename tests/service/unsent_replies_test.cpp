#include "service/unsent_replies.h"

#include <gtest/gtest.h>

namespace simile::service {
namespace {

TEST(UnsentRepliesTest, AdmitsRepliesUntilTheirMemoryIsUsed) {
  UnsentReplies replies(100);
  EXPECT_TRUE(replies.Add(60));
  EXPECT_TRUE(replies.Add(40));
  EXPECT_FALSE(replies.Add(1));
}

TEST(UnsentRepliesTest, AdmitsAnotherOneOnceOneIsSent) {
  UnsentReplies replies(100);
  EXPECT_TRUE(replies.Add(60));
  EXPECT_FALSE(replies.Add(60));
  replies.Remove(60);
  EXPECT_TRUE(replies.Add(60));
}

TEST(UnsentRepliesTest, AdmitsAReplyThatIsLargerThanAllMemoryOnlyAlone) {
  UnsentReplies replies(100);
  EXPECT_TRUE(replies.Add(200));
  EXPECT_FALSE(replies.Add(1));
  replies.Remove(200);
  EXPECT_TRUE(replies.Add(1));
  EXPECT_FALSE(replies.Add(200));
}

}  // namespace
}  // namespace simile::service

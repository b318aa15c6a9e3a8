#include "service/calls/unsent_replies.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace simile::service {
namespace {

using Part = UnsentReplies::Part;

constexpr CallerKey kCaller = 1;
constexpr CallerKey kOther = 2;

TEST(UnsentRepliesTest, AdmitsRepliesOfOneCallerUntilTheyHaveHalf) {
  const auto replies = std::make_shared<UnsentReplies>(100);
  Part first;
  Part second;
  Part third;
  EXPECT_TRUE(replies->Hold(kCaller, 30, first));
  EXPECT_TRUE(replies->Hold(kCaller, 20, second));
  EXPECT_FALSE(replies->Hold(kCaller, 1, third));
  EXPECT_EQ(replies->bytes(), 50U);
}

TEST(UnsentRepliesTest, KeepsSomeForOtherCallers) {
  const auto replies = std::make_shared<UnsentReplies>(100);
  Part first;
  Part second;
  EXPECT_TRUE(replies->Hold(kCaller, 50, first));
  EXPECT_TRUE(replies->Hold(kOther, 25, second));
}

TEST(UnsentRepliesTest, AdmitsAnotherOneOnceOneIsSent) {
  const auto replies = std::make_shared<UnsentReplies>(100);
  Part sent;
  Part second;
  EXPECT_TRUE(replies->Hold(kCaller, 40, sent));
  EXPECT_FALSE(replies->Hold(kCaller, 40, second));
  { const Part gone = std::move(sent); }
  EXPECT_EQ(replies->bytes(), 0U);
  EXPECT_TRUE(replies->Hold(kCaller, 40, second));
}

TEST(UnsentRepliesTest, AdmitsAReplyThatIsLargerThanAllMemoryOnlyAlone) {
  const auto replies = std::make_shared<UnsentReplies>(100);
  Part large;
  Part other;
  EXPECT_TRUE(replies->Hold(kCaller, 200, large));
  EXPECT_FALSE(replies->Hold(kOther, 1, other));
  { const Part gone = std::move(large); }
  EXPECT_TRUE(replies->Hold(kCaller, 1, other));
  EXPECT_FALSE(replies->Hold(kCaller, 200, large));
}

TEST(UnsentRepliesTest, IsKeptByRepliesThatOutliveTheServer) {
  auto replies = std::make_shared<UnsentReplies>(100);
  Part part;
  EXPECT_TRUE(replies->Hold(kCaller, 10, part));
  replies.reset();
}

}  // namespace
}  // namespace simile::service

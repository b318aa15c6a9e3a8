#include "service/request_id.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace simile::service {
namespace {

TEST(RequestIdTest, AllowsPrintableAsciiUpToItsMaximum) {
  EXPECT_TRUE(IsUsableRequestId("4f1c-77"));
  EXPECT_TRUE(IsUsableRequestId("with space ~"));
  EXPECT_TRUE(IsUsableRequestId(std::string(128, 'x')));
  EXPECT_FALSE(IsUsableRequestId(""));
  EXPECT_FALSE(IsUsableRequestId(std::string(129, 'x')));
  EXPECT_FALSE(IsUsableRequestId("a\nb"));
  EXPECT_FALSE(IsUsableRequestId("caf\xC3\xA9"));
  EXPECT_FALSE(IsUsableRequestId(std::string("a\0b", 3)));
}

TEST(RequestIdsTest, MakesDistinctUsableIds) {
  RequestIds ids(42);
  std::set<std::string> seen;
  for (int index = 0; index < 10'000; ++index) {
    const std::string id = ids.Next();
    ASSERT_EQ(id.size(), 16U);
    ASSERT_TRUE(IsUsableRequestId(id));
    ASSERT_TRUE(seen.insert(id).second) << id << " came twice";
  }
}

TEST(RequestIdsTest, DiffersBetweenSeeds) { EXPECT_NE(RequestIds(1).Next(), RequestIds(2).Next()); }

}  // namespace
}  // namespace simile::service

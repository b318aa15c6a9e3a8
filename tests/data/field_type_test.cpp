#include "data/payload/field_type.h"

#include <gtest/gtest.h>

namespace simile::data {
namespace {

TEST(TimeValueTest, ReadsRfc3339AndDays) {
  EXPECT_EQ(ParseTime("1970-01-01T00:00:01.5Z"), 1'500'000);
  EXPECT_EQ(ParseTime("1970-01-02T01:00:00+01:00"), 86'400'000'000);
  EXPECT_EQ(ParseTime("1970-01-02"), 86'400'000'000);
  EXPECT_EQ(ParseTime("1969-12-31T23:59:59Z"), -1'000'000);
  for (const char* text : {"", "1970", "1970-1-2", "1970-13-01", "1970-01-01 extra", "tomorrow",
                           " 1970-01-02", "12345-01-01T00:00:00Z"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
  for (const char* text : {"1970-01-01T00:00:01.5", "1970-01-01 00:00:01.5",
                           "1970-01-01 01:00:01.5+01:00", "1970-01-01T00:00:01.500000+0000"}) {
    EXPECT_EQ(ParseTime(text), 1'500'000) << text;
  }
  for (const char* text :
       {"1970-01-01 ", "1970-01-01T", "1970-01-01 00:00:01 ", "1970-01-01T25:00:00"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
  EXPECT_EQ(TimeText(1'500'000), "1970-01-01T00:00:01.5Z");
}

TEST(TimeValueTest, TellsTimesWithoutAZone) {
  for (const char* text : {"1970-01-01T00:00:01", "1970-01-01 00:00:01.25"}) {
    EXPECT_TRUE(LacksZone(text)) << text;
  }
  for (const char* text : {"1970-01-01", "1970-01-01T00:00:01Z", "1970-01-01T00:00:01-05:00",
                           "1970-01-01 00:00:01+0000", "1970-01-01t00:00:01z"}) {
    EXPECT_FALSE(LacksZone(text)) << text;
  }
}

}  // namespace
}  // namespace simile::data

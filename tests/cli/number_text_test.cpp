#include "cli/number_text.h"

#include <limits>

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

TEST(NumberTextTest, SeparatesThousands) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1'000), "1,000");
  EXPECT_EQ(WithThousands(123'456), "123,456");
  EXPECT_EQ(WithThousands(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(NumberTextTest, CountsInSingularAndPlural) {
  EXPECT_EQ(Counted(1, "row"), "1 row");
  EXPECT_EQ(Counted(0, "row"), "0 rows");
  EXPECT_EQ(Counted(5'000, "row"), "5,000 rows");
}

TEST(NumberTextTest, PicksTheUnitOfADuration) {
  EXPECT_EQ(DurationText(94), "94 us");
  EXPECT_EQ(DurationText(9'999), "9,999 us");
  EXPECT_EQ(DurationText(12'345), "12.3 ms");
  EXPECT_EQ(DurationText(1'500'000), "1.50 s");
}

TEST(NumberTextTest, PicksTheUnitOfASize) {
  EXPECT_EQ(BytesText(812), "812 B");
  EXPECT_EQ(BytesText(2'048), "2.0 KiB");
  EXPECT_EQ(BytesText(9'961'472), "9.5 MiB");
  EXPECT_EQ(BytesText(std::uint64_t{5} << 28), "1.25 GiB");
}

}  // namespace
}  // namespace simile::cli

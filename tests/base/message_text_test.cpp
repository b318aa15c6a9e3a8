#include "base/message_text.h"

#include <limits>

#include <gtest/gtest.h>

namespace simile::base {
namespace {

TEST(MessageTextTest, SeparatesThousands) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1'000), "1,000");
  EXPECT_EQ(Grouped(123'456), "123,456");
  EXPECT_EQ(Grouped(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(MessageTextTest, WritesSingularAndPlural) {
  EXPECT_EQ(Counted(1, "row"), "1 row");
  EXPECT_EQ(Counted(0, "row"), "0 rows");
  EXPECT_EQ(Counted(5'000, "row"), "5,000 rows");
  EXPECT_EQ(Counted(144, "batch"), "144 batches");
}

TEST(MessageTextTest, ChoosesTheUnitOfBytes) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1'023), "1023 B");
  EXPECT_EQ(BytesText(1'024), "1.0 KiB");
  EXPECT_EQ(BytesText(9'961'472), "9.5 MiB");
  EXPECT_EQ(BytesText(std::uint64_t{5} << 28), "1.25 GiB");
  EXPECT_EQ(BytesText(30'720'000'000), "28.61 GiB");
}

TEST(MessageTextTest, QuotesTextOnOneLine) {
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("Am\u00e9lie"), "\"Am\u00e9lie\"");
  EXPECT_EQ(Quoted("a\nb"), "\"a\\u000ab\"");
  EXPECT_EQ(Quoted("\u0085"), "\"\\u0085\"");
  EXPECT_EQ(Quoted("a\xff"), "\"a\\xff\"");
  EXPECT_EQ(Quoted(std::string(60, 'x')), '"' + std::string(60, 'x') + '"');
  EXPECT_EQ(Quoted(std::string(61, 'x')), '"' + std::string(60, 'x') + "...\"");
}

}  // namespace
}  // namespace simile::base

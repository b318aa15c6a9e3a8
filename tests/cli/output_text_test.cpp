#include "cli/output_text.h"

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

TEST(DisplayTextTest, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3U);
  EXPECT_EQ(DisplayWidth("Amélie"), 6U);
  EXPECT_EQ(DisplayWidth("七人の侍"), 8U);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1U);  // a letter and a combining accent
  EXPECT_EQ(DisplayWidth(""), 0U);
}

TEST(DisplayTextTest, ShortensByColumnsWithoutCuttingCharacters) {
  EXPECT_EQ(Shortened("Toy Story", 9), "Toy Story");
  EXPECT_EQ(Shortened("Toy Story 2", 8), "Toy Sto…");
  EXPECT_EQ(Shortened("Toy Story", 5), "Toy…");  // no space before the ellipsis
  EXPECT_EQ(Shortened("七人の侍", 6), "七人…");  // half a wide character does not fit
  EXPECT_EQ(Shortened("ne\u0301e\u0301", 2), "n…");
  EXPECT_EQ(Shortened("ne\u0301ex", 3), "ne\u0301…");
  EXPECT_EQ(Shortened("abc", 0), "");
}

TEST(DisplayTextTest, ReplacesTerminalControlCharacters) {
  EXPECT_EQ(Printable("a\x1b[31mb"), "a\uFFFD[31mb");
  EXPECT_EQ(Printable("one\ttwo\r"), "one\uFFFDtwo\uFFFD");
  EXPECT_EQ(Printable("\u202Egnirts"), "\uFFFDgnirts");  // right-to-left override
  EXPECT_EQ(Printable("\u009b31m"), "\uFFFD31m");        // the one-character CSI
  EXPECT_EQ(Printable("cut \xC3"), "cut \uFFFD");
  EXPECT_EQ(Printable("Amélie 七"), "Amélie 七");
}

TEST(DisplayTextTest, KeepsLineBreaksOnlyWhenAsked) {
  EXPECT_EQ(Printable("a\nb"), "a\uFFFDb");
  EXPECT_EQ(Printable("a\nb", LineBreaks::kKept), "a\nb");
}

}  // namespace
}  // namespace simile::cli

#include <string>

#include <gtest/gtest.h>

#include "filter/text_index.h"

namespace simile::filter {
namespace {

TEST(FoldTextTest, LowersCase) {
  EXPECT_EQ(FoldText("Toy STORY"), "toy story");
  EXPECT_EQ(FoldText("ΟΔΥΣΣΕΙΑ"), "οδυσσεια");
}

TEST(FoldTextTest, UnifiesTheTwoLowerSigmas) {
  EXPECT_EQ(FoldText("Ὀδυσσεύς"), FoldText("ΟΔΥΣΣΕΥΣ"));
}

TEST(FoldTextTest, DropsAccentsComposedOrNot) {
  EXPECT_EQ(FoldText("Amélie"), "amelie");
  EXPECT_EQ(FoldText("Ame\u0301lie"), "amelie");
  EXPECT_EQ(FoldText("Łódź"), "łodz");  // a stroke is part of the letter, not a mark
  EXPECT_EQ(FoldText("Ầ"), "a");        // two marks on one letter
}

TEST(FoldTextTest, WritesSharpSAsDoubleS) {
  EXPECT_EQ(FoldText("Straße"), "strasse");
  EXPECT_EQ(FoldText("STRAẞE"), "strasse");
}

// Unicode's folding without a locale: İ loses its dot as a mark, ı stays a letter of its own.
TEST(FoldTextTest, FoldsTheTurkishDottedButNotTheDotlessI) {
  EXPECT_EQ(FoldText("İstanbul"), "istanbul");
  EXPECT_EQ(FoldText("Yılmaz"), "yılmaz");
  EXPECT_EQ(FoldText("I"), "i");
}

TEST(FoldTextTest, UnifiesCompatibilityForms) {
  EXPECT_EQ(FoldText("Ｔｏｙ　１"), "toy 1");  // full width, ideographic space
  EXPECT_EQ(FoldText("ﬁlm"), "film");
  EXPECT_EQ(FoldText("Alien³"), "alien3");
  EXPECT_EQ(FoldText("½"), FoldText("1⁄2"));
}

TEST(FoldTextTest, MakesTypographicPunctuationPlain) {
  EXPECT_EQ(FoldText("Ocean’s Eleven"), "ocean's eleven");
  EXPECT_EQ(FoldText("Spider–Man"), "spider-man");
}

TEST(EqualFoldedTest, DropsCaseWidthSpaceAndTheMarksOfLatinAndGreekAlone) {
  EXPECT_TRUE(EqualFolded("Amélie", "AME\u0301LIE"));
  EXPECT_TRUE(EqualFolded("Amélie", "amelie"));
  EXPECT_TRUE(EqualFolded("Ὀδυσσεύς", "ΟΔΥΣΣΕΥΣ"));
  EXPECT_TRUE(EqualFolded("Ｔｏｙ　１", " toy  1"));
  EXPECT_TRUE(EqualFolded("ガス", "カ\u3099ス"));  // composed and not
  EXPECT_TRUE(EqualFolded("й", "и\u0306"));
  EXPECT_FALSE(EqualFolded("ガス", "カス"));
  EXPECT_FALSE(EqualFolded("й", "и"));
  EXPECT_FALSE(EqualFolded("कि", "की"));
  EXPECT_FALSE(EqualFolded("ไป", "ไป่"));
  EXPECT_FALSE(EqualFolded("كَتَبَ", "كُتِبَ"));
}

TEST(FoldTextTest, DropsInvisibleCharacters) {
  EXPECT_EQ(FoldText("zero\u200bwidth"), "zerowidth");
  EXPECT_EQ(FoldText("soft\u00adhyphen"), "softhyphen");
}

TEST(FoldTextTest, KeepsEmojiButNotTheirJoinersAndVariants) {
  EXPECT_EQ(FoldText("🎬 Film"), "🎬 film");
  EXPECT_EQ(FoldText("❤\ufe0f"), "❤");
  EXPECT_EQ(FoldText("👩\u200d🚀"), "👩🚀");
}

TEST(FoldTextTest, LeavesOneSpaceBetweenWordsAndNoneAtTheEnds) {
  EXPECT_EQ(FoldText("  Toy \t\r\n Story  "), "toy story");
  EXPECT_EQ(FoldText("é\u00a0\u2003\u2028\u2029\u0085é"), "e e");
  EXPECT_EQ(FoldText(" \n\t"), "");
  EXPECT_EQ(FoldText("\u00a0"), "");
  EXPECT_EQ(FoldText(""), "");
}

TEST(FoldTextTest, NeverContainsALineBreak) {
  for (const char* text : {"a\nb", "é\nb", "a\vb\f", "é\u2028b", "é\u0085b", "é\r\nb"}) {
    EXPECT_EQ(FoldText(text).find('\n'), std::string::npos);
  }
}

TEST(FoldTextTest, FoldsAsciiAlikeOnBothPaths) {
  std::string ascii;
  for (char byte = 1; byte > 0 && byte < 127; ++byte) ascii += byte;
  // An accent makes the text take the path beyond ASCII.
  const std::string general = FoldText(ascii + " é");
  EXPECT_EQ(general.substr(0, general.size() - 2), FoldText(ascii));
}

TEST(FoldTextTest, ChangesNothingWhenAppliedTwice) {
  for (const char* text : {"Ǆungla", "İ", "ﷺ", "Straße", "Ａ　Ｂ", "ΐ", "🎬", "한국", "が"}) {
    EXPECT_EQ(FoldText(FoldText(text)), FoldText(text)) << text;
  }
}

TEST(FoldTextTest, GrowsWhenOneCharacterFoldsToMany) {
  EXPECT_EQ(FoldText("ﷺﷺﷺﷺ").size() > std::string("ﷺﷺﷺﷺ").size(), true);
}

TEST(FoldTextTest, FoldsInvalidUtf8ToNothing) { EXPECT_EQ(FoldText("\xc3\x28"), ""); }

}  // namespace
}  // namespace simile::filter

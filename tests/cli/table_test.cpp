#include "cli/table.h"

#include <gtest/gtest.h>

namespace simile::cli {
namespace {

const Terminal kPipe{};
constexpr Terminal Narrow(std::size_t width) { return {true, false, width}; }

TEST(TableTest, AlignsWideCharactersByColumns) {
  Table table({{"title"}, {"year", Align::kRight}});
  table.AddRow({"七人の侍", "1954"});
  table.AddRow({"Ran", "985"});
  EXPECT_EQ(table.Render(kPipe, 0),
            "title     year\n"
            "七人の侍  1954\n"
            "Ran        985\n");
}

TEST(TableTest, HasNoHeadingLineWithoutHeadings) {
  Table table({{}, {}});
  table.AddRow({"a", "b"});
  EXPECT_EQ(table.Render(kPipe, 2), "  a  b\n");
}

TEST(TableTest, LeavesNoSpacesAtTheEndOfALine) {
  Table table({{}, {}});
  table.AddRow({"a", ""});
  table.AddRow({"long", "b"});
  EXPECT_EQ(table.Render(kPipe, 0), "a\nlong  b\n");
}

TEST(TableTest, ShortensTheWidestColumnThatMayShrinkOnATerminal) {
  Table table({{}, {"", Align::kLeft, true}, {}});
  table.AddRow({"fixed text", "a rather long title of a film", "1995"});
  EXPECT_EQ(table.Render(Narrow(30), 0), "fixed text  a rather lo…  1995\n");
}

TEST(TableTest, ShortensIdsWhenNothingElseCanBe) {
  Table table({{"", Align::kLeft, true, true}, {"", Align::kLeft, true}});
  table.AddRow({"the-id-of-a-film-1995", "its title"});
  EXPECT_EQ(table.Render(Narrow(31), 0), "the-id-of-a-film-1995  its tit…\n");
  EXPECT_EQ(table.Render(Narrow(25), 0), "the-id-of-a-fi…  its tit…\n");
  EXPECT_EQ(table.Render(Narrow(3), 0), "the-id-…  its tit…\n");
}

TEST(TableTest, WrapsACellAtSpacesAndWithinALongWord) {
  Table table({{"name"}, {"value", Align::kLeft, true, false, true}, {"last"}});
  table.AddRow({"a", "two words", "x"});
  table.AddRow({"b", "/a/path/七人の侍/films", "y"});
  EXPECT_EQ(table.Render(Narrow(22), 0),
            "name  value       last\n"
            "a     two words   x\n"
            "b     /a/path/七  y\n"
            "      人の侍/fil\n"
            "      ms\n");
  EXPECT_EQ(table.Render(kPipe, 0),
            "name  value                   last\n"
            "a     two words               x\n"
            "b     /a/path/七人の侍/films  y\n");
}

TEST(TableTest, CutsNothingInAPipe) {
  Table table({{"", Align::kLeft, true}});
  const std::string text(500, 'x');
  table.AddRow({text});
  EXPECT_EQ(table.Render(kPipe, 0), text + '\n');
}

TEST(TableTest, KeepsAMinimumWidthWhenTheTerminalIsTiny) {
  Table table({{"", Align::kLeft, true}});
  table.AddRow({"0123456789"});
  EXPECT_EQ(table.Render(Narrow(3), 0), "0123456…\n");
}

TEST(TableTest, ReplacesControlCharactersInCells) {
  Table table({{""}});
  table.AddRow({"\x1b]0;title\x07"});
  EXPECT_EQ(table.Render(kPipe, 0), "\uFFFD]0;title\uFFFD\n");
}

}  // namespace
}  // namespace simile::cli

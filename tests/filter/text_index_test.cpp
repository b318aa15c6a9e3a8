#include "filter/text_index.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/payload_builder.h"
#include "simile/limits.h"

namespace simile::filter {

bool operator==(const TextMatch& left, const TextMatch& right) {
  return left.row == right.row && left.quality == right.quality;
}
void PrintTo(const TextMatch& match, std::ostream* out) {
  *out << "row " << match.row << " quality " << static_cast<int>(match.quality);
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum MatchQuality;

PayloadValue Text(const char* text) { return {std::string(text)}; }
PayloadValue List(std::vector<PayloadValue> values) { return {PayloadList(std::move(values))}; }

data::PayloadTable Table(const std::vector<PayloadObject>& rows) {
  data::PayloadTableBuilder builder(rows.size(), Limits{});
  for (const PayloadObject& row : rows) EXPECT_TRUE(builder.Add(row).ok());
  return std::move(builder).Build();
}

TextIndex Titles(const std::vector<const char*>& titles) {
  std::vector<PayloadObject> rows;
  rows.reserve(titles.size());
  for (const char* title : titles) rows.push_back({{"title", Text(title)}});
  return TextIndex::Build(Table(rows), {"title"});
}

TEST(TextIndexTest, PutsWholeMatchesFirstThenPrefixesThenParts) {
  const TextIndex index =
      Titles({"The Batman", "Batman Returns", "Batman", "Toy Story", "BATMAN", "Batman Begins"});
  const TextMatches matches = index.Find("title", "batman", 20);
  EXPECT_THAT(matches.first,
              ElementsAre(TextMatch{2, kWhole}, TextMatch{4, kWhole}, TextMatch{1, kPrefix},
                          TextMatch{5, kPrefix}, TextMatch{0, kPart}));
  EXPECT_EQ(matches.match_count, 5U);
  EXPECT_EQ(matches.whole_match_count, 2U);
}

TEST(TextIndexTest, CountsAllButReturnsTheBestWithinTheLimit) {
  const TextIndex index = Titles({"a b", "b a", "x a", "a", "a c"});
  const TextMatches two = index.Find("title", "a", 2);
  EXPECT_THAT(two.first, ElementsAre(TextMatch{3, kWhole}, TextMatch{0, kPrefix}));
  EXPECT_EQ(two.match_count, 5U);
  EXPECT_EQ(two.whole_match_count, 1U);
  const TextMatches none = index.Find("title", "a", 0);
  EXPECT_THAT(none.first, IsEmpty());
  EXPECT_EQ(none.match_count, 5U);
}

TEST(TextIndexTest, IgnoresCaseAccentsAndWidthOnBothSides) {
  const TextIndex index = Titles({"Amélie", "Straße", "Ｔｏｙ Story"});
  EXPECT_THAT(index.Find("title", "AMELIE", 9).first, ElementsAre(TextMatch{0, kWhole}));
  EXPECT_THAT(index.Find("title", "ame\u0301", 9).first, ElementsAre(TextMatch{0, kPrefix}));
  EXPECT_THAT(index.Find("title", "STRASSE", 9).first, ElementsAre(TextMatch{1, kWhole}));
  EXPECT_THAT(index.Find("title", " toy   STORY ", 9).first, ElementsAre(TextMatch{2, kWhole}));
}

TEST(TextIndexTest, CountsARowOnce) {
  const TextIndex index = Titles({"New York, New York", "York"});
  const TextMatches matches = index.Find("title", "york", 9);
  EXPECT_THAT(matches.first, ElementsAre(TextMatch{1, kWhole}, TextMatch{0, kPart}));
  EXPECT_EQ(matches.match_count, 2U);
}

TEST(TextIndexTest, NeverMatchesAcrossValuesOrRows) {
  const TextIndex rows = Titles({"Toy", "Story"});
  EXPECT_EQ(rows.Find("title", "toy story", 9).match_count, 0U);
  EXPECT_EQ(rows.Find("title", "toystory", 9).match_count, 0U);
  EXPECT_EQ(rows.Find("title", "toy\nstory", 9).match_count, 0U);
  const TextIndex values =
      TextIndex::Build(Table({{{"cast", List({Text("Tom"), Text("Hanks")})}}}), {"cast"});
  EXPECT_EQ(values.Find("cast", "tom hanks", 9).match_count, 0U);
}

TEST(TextIndexTest, MatchesAListByItsBestString) {
  const TextIndex index = TextIndex::Build(
      Table({{{"cast", List({Text("Tom Hanks"), Text("Tim Allen")})}},
             {{"cast", List({Text("Tim Allen Jr"), {std::int64_t{7}}, Text("Tim Allen")})}},
             {{"cast", List({})}},
             {{"cast", Text("Tim")}}}),
      {"cast"});
  EXPECT_THAT(index.Find("cast", "tim allen", 9).first,
              ElementsAre(TextMatch{0, kWhole}, TextMatch{1, kWhole}));
  EXPECT_THAT(index.Find("cast", "tim", 9).first,
              ElementsAre(TextMatch{3, kWhole}, TextMatch{0, kPrefix}, TextMatch{1, kPrefix}));
  EXPECT_THAT(index.Find("cast", "7", 9).first, IsEmpty());
}

TEST(TextIndexTest, SkipsRowsWithoutTheField) {
  const TextIndex index = TextIndex::Build(Table({{{"year", {std::int64_t{1995}}}},
                                                  {{"title", Text("Heat")}},
                                                  {{"title", {std::monostate{}}}},
                                                  {{"title", Text("Heat")}}}),
                                           {"title"});
  EXPECT_THAT(index.Find("title", "heat", 9).first,
              ElementsAre(TextMatch{1, kWhole}, TextMatch{3, kWhole}));
}

TEST(TextIndexTest, OmitsFieldsNoRowHas) {
  const data::PayloadTable table = Table({{{"title", Text("Heat")}, {"name", Text("x")}}});
  EXPECT_THAT(TextIndex::Build(table, {"name", "subtitle", "title"}).fields(),
              ElementsAre("name", "title"));
  EXPECT_THAT(TextIndex::Build(data::PayloadTable(), {"title"}).fields(), IsEmpty());
}

TEST(TextIndexTest, SearchesTheNamedField) {
  const TextIndex index = TextIndex::Build(
      Table({{{"title", Text("Heat")}, {"name", Text("Ronin")}}}), {"name", "title"});
  EXPECT_EQ(index.Find("title", "ronin", 9).match_count, 0U);
  EXPECT_EQ(index.Find("name", "ronin", 9).match_count, 1U);
}

TEST(TextIndexTest, FindsNothingForTextThatFoldsToNothing) {
  const TextIndex index = Titles({"Heat", ""});
  EXPECT_EQ(index.Find("title", "", 9).match_count, 0U);
  EXPECT_EQ(index.Find("title", " \u0301\u200b ", 9).match_count, 0U);
}

TEST(TextIndexTest, FindsPartsInsideWordsOfAnyScript) {
  const TextIndex index = Titles({"Солярис", "千と千尋の神隠し", "🎬🎬 Cut"});
  EXPECT_THAT(index.Find("title", "ЛЯР", 9).first, ElementsAre(TextMatch{0, kPart}));
  EXPECT_THAT(index.Find("title", "千尋", 9).first, ElementsAre(TextMatch{1, kPart}));
  EXPECT_THAT(index.Find("title", "🎬", 9).first, ElementsAre(TextMatch{2, kPrefix}));
}

TEST(TextIndexTest, CountsItsBytes) {
  EXPECT_EQ(TextIndex().bytes(), 0U);
  EXPECT_EQ(Titles({"Heat", "Ｈ"}).bytes(), 7U + 2 * sizeof(std::uint64_t));
}

}  // namespace
}  // namespace simile::filter

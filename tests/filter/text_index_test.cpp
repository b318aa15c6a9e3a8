#include "filter/text_index.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unasked_work.h"
#include "data/payload/payload_table.h"
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

TextMatches Find(const TextIndex& index, std::string_view field, std::string_view text,
                 std::size_t limit, const RowMask* mask = nullptr) {
  base::LongWork work = tests::UnaskedWork();
  return index.Find({std::string(field)}, text, limit, mask, work).value();
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
  const TextMatches matches = Find(index, "title", "batman", 20);
  EXPECT_THAT(matches.first,
              ElementsAre(TextMatch{2, kWhole}, TextMatch{4, kWhole}, TextMatch{1, kPrefix},
                          TextMatch{5, kPrefix}, TextMatch{0, kPart}));
  EXPECT_EQ(matches.match_count, 5U);
  EXPECT_EQ(matches.whole_match_count, 2U);
}

TEST(TextIndexTest, FindsMatchesInAndAcrossBlocksOfALongText) {
  // Longer than two blocks of the search, so that some values begin in one and end in the next.
  std::vector<std::string> titles;
  for (int row = 0; row < 20'000; ++row) titles.push_back(fmt::format("title {} ends", row));
  std::vector<const char*> rows;
  for (const std::string& title : titles) rows.push_back(title.c_str());
  const TextIndex index = Titles(rows);
  EXPECT_EQ(Find(index, "title", "e", 1).match_count, 20'000U);
  for (Row row = 0; row < 20'000; row += 499) {
    ASSERT_THAT(Find(index, "title", titles[row], 2).first, ElementsAre(TextMatch{row, kWhole}));
  }
}

TEST(TextIndexTest, EndsWhenTheCallIsOver) {
  const std::string title(1'000, 'x');
  const TextIndex index = Titles(std::vector<const char*>(10'000, title.c_str()));
  base::LongWork work([] { return absl::CancelledError("gone"); });
  EXPECT_EQ(index.Find({"title"}, "y", 1, nullptr, work).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(TextIndexTest, CountsAllButReturnsTheBestWithinTheLimit) {
  const TextIndex index = Titles({"a b", "b a", "x a", "a", "a c"});
  const TextMatches two = Find(index, "title", "a", 2);
  EXPECT_THAT(two.first, ElementsAre(TextMatch{3, kWhole}, TextMatch{0, kPrefix}));
  EXPECT_EQ(two.match_count, 5U);
  EXPECT_EQ(two.whole_match_count, 1U);
  const TextMatches none = Find(index, "title", "a", 0);
  EXPECT_THAT(none.first, IsEmpty());
  EXPECT_EQ(none.match_count, 5U);
}

TEST(TextIndexTest, IgnoresCaseAccentsAndWidthOnBothSides) {
  const TextIndex index = Titles({"Amélie", "Straße", "Ｔｏｙ Story"});
  EXPECT_THAT(Find(index, "title", "AMELIE", 9).first, ElementsAre(TextMatch{0, kWhole}));
  EXPECT_THAT(Find(index, "title", "ame\u0301", 9).first, ElementsAre(TextMatch{0, kPrefix}));
  EXPECT_THAT(Find(index, "title", "STRASSE", 9).first, ElementsAre(TextMatch{1, kWhole}));
  EXPECT_THAT(Find(index, "title", " toy   STORY ", 9).first, ElementsAre(TextMatch{2, kWhole}));
}

TEST(TextIndexTest, CountsARowOnce) {
  const TextIndex index = Titles({"New York, New York", "York"});
  const TextMatches matches = Find(index, "title", "york", 9);
  EXPECT_THAT(matches.first, ElementsAre(TextMatch{1, kWhole}, TextMatch{0, kPart}));
  EXPECT_EQ(matches.match_count, 2U);
}

TEST(TextIndexTest, NeverMatchesAcrossValuesOrRows) {
  const TextIndex rows = Titles({"Toy", "Story"});
  EXPECT_EQ(Find(rows, "title", "toy story", 9).match_count, 0U);
  EXPECT_EQ(Find(rows, "title", "toystory", 9).match_count, 0U);
  EXPECT_EQ(Find(rows, "title", "toy\nstory", 9).match_count, 0U);
  const TextIndex values =
      TextIndex::Build(Table({{{"cast", List({Text("Tom"), Text("Hanks")})}}}), {"cast"});
  EXPECT_EQ(Find(values, "cast", "tom hanks", 9).match_count, 0U);
}

TEST(TextIndexTest, MatchesAListByItsBestString) {
  const TextIndex index = TextIndex::Build(
      Table({{{"cast", List({Text("Tom Hanks"), Text("Tim Allen")})}},
             {{"cast", List({Text("Tim Allen Jr"), {std::int64_t{7}}, Text("Tim Allen")})}},
             {{"cast", List({})}},
             {{"cast", Text("Tim")}}}),
      {"cast"});
  EXPECT_THAT(Find(index, "cast", "tim allen", 9).first,
              ElementsAre(TextMatch{0, kWhole}, TextMatch{1, kWhole}));
  EXPECT_THAT(Find(index, "cast", "tim", 9).first,
              ElementsAre(TextMatch{3, kWhole}, TextMatch{0, kPrefix}, TextMatch{1, kPrefix}));
  EXPECT_THAT(Find(index, "cast", "7", 9).first, IsEmpty());
}

TEST(TextIndexTest, SkipsRowsWithoutTheField) {
  const TextIndex index = TextIndex::Build(Table({{{"year", {std::int64_t{1995}}}},
                                                  {{"title", Text("Heat")}},
                                                  {{"title", {std::monostate{}}}},
                                                  {{"title", Text("Heat")}}}),
                                           {"title"});
  EXPECT_THAT(Find(index, "title", "heat", 9).first,
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
  EXPECT_EQ(Find(index, "title", "ronin", 9).match_count, 0U);
  EXPECT_EQ(Find(index, "name", "ronin", 9).match_count, 1U);
}

TEST(TextIndexTest, SearchesSeveralFieldsAndCountsARowOnceByItsBestString) {
  const TextIndex index =
      TextIndex::Build(Table({{{"title", Text("Ronin")}, {"name", Text("Heat of Ronin")}},
                              {{"title", Text("Heat")}},
                              {{"name", List({Text("The Ronin"), Text("Ronin II")})}},
                              {{"title", Text("Ronin 2")}, {"name", Text("ronin")}}}),
                       {"title", "name"});
  base::LongWork work = tests::UnaskedWork();
  const TextMatches found = index.Find({"title", "name"}, "ronin", 9, nullptr, work).value();
  EXPECT_THAT(found.first,
              ElementsAre(TextMatch{0, kWhole}, TextMatch{3, kWhole}, TextMatch{2, kPrefix}));
  EXPECT_EQ(found.match_count, 3U);
  EXPECT_EQ(found.whole_match_count, 2U);
  EXPECT_EQ(index.Find({"title", "name"}, "ronin", 1, nullptr, work)->first.size(), 1U);
}

TEST(TextIndexTest, OffersTheNearestValueOfTheFieldsToTheRowsThatMayMatch) {
  const TextIndex index = TextIndex::Build(
      Table({{{"title", Text("Toy Story")}, {"name", Text("Woody")}}, {{"title", Text("Heat")}}}),
      {"title", "name"});
  base::LongWork work = tests::UnaskedWork();
  EXPECT_EQ(index.Nearest({"title"}, "Toy Storry", nullptr, work).value(), "toy story");
  EXPECT_EQ(index.Nearest({"title"}, "Wody", nullptr, work).value(), "");
  EXPECT_EQ(index.Nearest({"title", "name"}, "Wody", nullptr, work).value(), "woody");
  RowMask mask(2);
  mask.Allow(1);
  EXPECT_EQ(index.Nearest({"title"}, "Toy Storry", &mask, work).value(), "");
}

TEST(TextIndexTest, FindsNothingForTextThatFoldsToNothing) {
  const TextIndex index = Titles({"Heat", ""});
  EXPECT_EQ(Find(index, "title", "", 9).match_count, 0U);
  EXPECT_EQ(Find(index, "title", " \u0301\u200b ", 9).match_count, 0U);
}

TEST(TextIndexTest, FindsPartsInsideWordsOfAnyScript) {
  const TextIndex index = Titles({"Солярис", "千と千尋の神隠し", "🎬🎬 Cut"});
  EXPECT_THAT(Find(index, "title", "ЛЯР", 9).first, ElementsAre(TextMatch{0, kPart}));
  EXPECT_THAT(Find(index, "title", "千尋", 9).first, ElementsAre(TextMatch{1, kPart}));
  EXPECT_THAT(Find(index, "title", "🎬", 9).first, ElementsAre(TextMatch{2, kPrefix}));
}

TEST(TextIndexTest, CountsItsBytes) {
  EXPECT_EQ(TextIndex().bytes(), 0U);
  EXPECT_EQ(Titles({"Heat", "Ｈ"}).bytes(), 7U + 2 * sizeof(std::uint64_t));
}

}  // namespace
}  // namespace simile::filter

#include "filter/payload_index.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unasked_work.h"
#include "filter/field_summary.h"
#include "filter/filters.h"
#include "filter/keyword_column.h"
#include "filter/payload_rows.h"

namespace simile::filter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void AddRows(const KeywordColumn& column, std::string_view text, RowMask& mask) {
  if (const auto keyword = column.Find(text)) column.AddRows(*keyword, mask);
}

FieldSummary SummarizeField(const Field& field, std::size_t values_max) {
  base::LongWork work = tests::UnaskedWork();
  return Summarize(field, values_max, work).value();
}

FieldType FindType(const std::vector<PayloadValue>& values) {
  std::vector<PayloadObject> rows;
  rows.reserve(values.size());
  for (const PayloadValue& value : values) rows.push_back({{"field", value}});
  const data::PayloadTable table = MakeTable(rows);
  return PayloadIndex::Build(table).Find("field")->type;
}

TEST(PayloadIndexTest, InfersTheTypeThatAllValuesHave) {
  EXPECT_EQ(FindType({Text("Solaris"), Text("Stalker"), {}}), FieldType::kKeyword);
  EXPECT_EQ(FindType({Texts({"Drama"}), Texts({})}), FieldType::kKeywords);
  EXPECT_EQ(FindType({Whole(1), Whole(-2)}), FieldType::kInteger);
  EXPECT_EQ(FindType({Whole(1), Real(0.5)}), FieldType::kNumber);
  EXPECT_EQ(FindType({Flag(true), Flag(false)}), FieldType::kBoolean);
  EXPECT_EQ(FindType({Text("2024-05-31T12:00:00Z"), Text("2024-05-31")}), FieldType::kTime);
  EXPECT_EQ(FindType({Text("2024-05-31T12:00:00Z"), Text("soon")}), FieldType::kKeyword);
  EXPECT_EQ(FindType({Text("1"), Whole(1)}), FieldType::kOther);
  EXPECT_EQ(FindType({List({Whole(1), Real(2)}), Whole(3), List({})}), FieldType::kIntegers);
  EXPECT_EQ(FindType({List({Whole(1)}), List({Real(0.5)})}), FieldType::kNumbers);
  EXPECT_EQ(FindType({List({Flag(true)}), Flag(false)}), FieldType::kBooleans);
  EXPECT_EQ(FindType({List({}), List({})}), FieldType::kKeywords);
  EXPECT_EQ(FindType({List({Whole(1), Text("1")})}), FieldType::kOther);
  EXPECT_EQ(FindType({List({Whole(1)}), Texts({"1"})}), FieldType::kOther);
  EXPECT_EQ(FindType({List({PayloadValue{}})}), FieldType::kOther);
  EXPECT_EQ(FindType({PayloadValue{PayloadObject{{"a", Whole(1)}}}}), FieldType::kOther);
  EXPECT_EQ(FindType({PayloadValue{}}), FieldType::kOther);
}

TEST(PayloadIndexTest, UsesADeclaredType) {
  const std::vector<PayloadObject> rows{{{"code", Text("2024-05-31")}, {"note", Text("a|b")}},
                                        {{"code", Text("2024-06-01")}, {"note", Text("c")}}};
  ASSERT_EQ(PayloadIndex::Build(MakeTable(rows)).Find("code")->type, FieldType::kTime);
  data::FieldRules rules;
  rules.declared = {{"code", FieldType::kKeyword}, {"note", FieldType::kKeywords}};
  PayloadIndex index = PayloadIndex::Build(MakeTable(rows, rules));
  EXPECT_EQ(index.Find("code")->type, FieldType::kKeyword);
  EXPECT_EQ(std::get<KeywordColumn>(index.Find("note")->column).keyword_count(), 2U);
  rules.separators = {{"note", "|"}};
  index = PayloadIndex::Build(MakeTable(rows, rules));
  EXPECT_EQ(std::get<KeywordColumn>(index.Find("note")->column).keyword_count(), 3U);
}

TEST(PayloadIndexTest, SeparatesTextsOnlyWhereTheSettingsSaySo) {
  EXPECT_EQ(FindType({Text("Drama|War"), Text("War"), Text("Drama | Comedy"), Text("Comedy")}),
            FieldType::kKeyword);
  EXPECT_THAT(SplitKeywords("Drama| War ||", "|"), ElementsAre("Drama", "War"));
  EXPECT_THAT(SplitKeywords("Drama; War, Film Noir", ", "), ElementsAre("Drama; War", "Film Noir"));
  EXPECT_THAT(SplitKeywords("", "|"), IsEmpty());
}

TEST(PayloadIndexTest, GuessesTheElementsOfListsThatAreMostlyEmpty) {
  std::vector<PayloadValue> values(95, List({}));
  values.resize(100, List({Whole(3)}));
  EXPECT_EQ(FindType(values), FieldType::kIntegers);
}

TEST(PayloadIndexTest, HasARowOnceForEachDistinctElement) {
  data::FieldRules rules;
  rules.declared = {{"n", FieldType::kIntegers}};
  const PayloadIndex index =
      PayloadIndex::Build(MakeTable({{{"n", List({Whole(3), Whole(1), Real(3)})}},
                                     {{"n", Whole(3)}},
                                     {{"n", List({})}},
                                     {{"n", List({Whole(2), Text("2")})}}},
                                    rules));
  const Field& field = *index.Find("n");
  const auto& column = std::get<OrderedColumn<std::int64_t>>(field.column);
  EXPECT_THAT(column.RowsThatPass({.equal = true}, 3)[1], ElementsAre(0, 1));
  EXPECT_THAT(column.RowsThatPass({.below = true}, 3)[0], ElementsAre(0));
  EXPECT_EQ(column.size(), 3U);
  EXPECT_EQ(field.present.size(), 3U);
  EXPECT_EQ(field.unfit.size(), 1U);
  const FieldSummary summary = SummarizeField(field, 2);
  EXPECT_EQ(summary.distinct_values, 2U);
  EXPECT_EQ(summary.least, SummaryValue(std::int64_t{1}));
  EXPECT_EQ(summary.greatest, SummaryValue(std::int64_t{3}));
}

TEST(PayloadIndexTest, CountsRowsWithBothBooleansTwice) {
  const PayloadIndex index = PayloadIndex::Build(MakeTable(
      {{{"b", List({Flag(true), Flag(false), Flag(true)})}}, {{"b", List({Flag(true)})}}}));
  const FieldSummary summary = SummarizeField(*index.Find("b"), 2);
  ASSERT_EQ(summary.most_common.size(), 2U);
  EXPECT_EQ(summary.most_common[0].value, SummaryValue(true));
  EXPECT_EQ(summary.most_common[0].rows, 2U);
  EXPECT_EQ(summary.most_common[1].rows, 1U);
}

TEST(PayloadIndexTest, KeepsValuesThatDoNotFitOutOfEveryCondition) {
  std::vector<PayloadObject> rows;
  for (int r = 0; r < 20; ++r) rows.push_back({{"year", r == 7 ? Text("N/A") : Whole(1990)}});
  const PayloadIndex index = PayloadIndex::Build(MakeTable(rows));
  const Field& year = *index.Find("year");
  EXPECT_EQ(year.type, FieldType::kInteger);
  EXPECT_EQ(year.present.size(), 19U);
  EXPECT_EQ(year.unfit.size(), 1U);
}

TEST(PayloadIndexTest, ComparesIntegersBesideNumbersExactly) {
  constexpr std::int64_t kBeyond = (std::int64_t{1} << 53) + 1;
  const PayloadIndex index =
      PayloadIndex::Build(MakeTable({{{"n", Whole(kBeyond)}},
                                     {{"n", Whole(kBeyond - 1)}},
                                     {{"n", Real(0.5)}},
                                     {{"n", Real(0x1p53)}},
                                     {{"n", Whole(std::numeric_limits<std::int64_t>::max())}},
                                     {{"n", Real(0x1p63)}}}));
  const auto& column = std::get<OrderedColumn<filter::Number>>(index.Find("n")->column);
  const auto equal = [&](filter::Number number) {
    return column.RowsThatPass({.equal = true}, number)[1];
  };
  EXPECT_THAT(equal(filter::Number(kBeyond)), ElementsAre(0));
  EXPECT_THAT(equal(filter::Number(kBeyond - 1)), ElementsAre(1, 3));
  EXPECT_THAT(equal(filter::Number(0x1p53)), ElementsAre(1, 3));
  EXPECT_THAT(equal(filter::Number(std::numeric_limits<std::int64_t>::max())), ElementsAre(4));
  EXPECT_THAT(equal(filter::Number(0x1p63)), ElementsAre(5));
  EXPECT_EQ(column.distinct_count(), 5U);
}

TEST(NumberTest, IsItsIntegerAgain) {
  using Limits64 = std::numeric_limits<std::int64_t>;
  for (const std::int64_t whole : {std::int64_t{0}, (std::int64_t{1} << 53) + 1, Limits64::max(),
                                   Limits64::max() - 511, Limits64::min(), Limits64::min() + 1}) {
    const filter::Number number(whole);
    EXPECT_EQ(number.is_rounded() ? number.whole() : static_cast<std::int64_t>(number.value),
              whole);
  }
}

// Enough rows for a keyword to have a bitmap, and too few for one.
TEST(PayloadIndexTest, FindsTheSameRowsForAListAndForATextWithBars) {
  std::vector<PayloadObject> rows;
  for (int r = 0; r < 500; ++r) {
    std::vector<std::string> genres;
    if (r % 2 == 0) genres.emplace_back("Drama");
    if (r % 3 == 0) genres.emplace_back("War");
    if (r % 100 == 7) genres.emplace_back("Film Noir");
    std::string joined;
    for (const std::string& genre : genres) joined += (joined.empty() ? "" : "|") + genre;
    rows.push_back({{"list", Texts(genres)}, {"text", Text(joined)}});
  }
  data::FieldRules rules;
  rules.separators = {{"text", "|"}};
  const PayloadIndex index = PayloadIndex::Build(MakeTable(rows, rules));
  const auto& list = std::get<KeywordColumn>(index.Find("list")->column);
  const auto& text = std::get<KeywordColumn>(index.Find("text")->column);
  ASSERT_EQ(index.Find("text")->type, FieldType::kKeywords);
  ASSERT_EQ(list.keyword_count(), 3U);
  ASSERT_EQ(text.keyword_count(), 3U);
  for (const char* genre : {"Drama", "War", "Film Noir", "Comedy", "drama"}) {
    RowMask of_list(rows.size());
    RowMask of_text(rows.size());
    AddRows(list, genre, of_list);
    AddRows(text, genre, of_text);
    EXPECT_EQ(of_list, of_text) << genre;
  }
  RowMask drama(rows.size());
  AddRows(list, "Drama", drama);
  EXPECT_EQ(drama.AllowedCount(), 250U);
}

TEST(PayloadIndexTest, CountsItsBytes) {
  std::vector<PayloadObject> rows;
  for (int r = 0; r < 1'000; ++r)
    rows.push_back({{"title", Text("title number " + std::to_string(r))}, {"year", Whole(r)}});
  const data::PayloadTable table = MakeTable(rows);
  const PayloadIndex index = PayloadIndex::Build(table);
  // A text twice, an entry and a row; a value and a row.
  EXPECT_LT(index.Find("title")->bytes(), 1'000U * 90);
  EXPECT_GT(index.Find("title")->bytes(), 1'000U * 30);
  EXPECT_LT(index.Find("year")->bytes(), 1'000U * 14);
  EXPECT_GE(index.bytes(), index.Find("title")->bytes() + index.Find("year")->bytes());
}

TEST(FieldSummaryTest, HasTheMostCommonValuesAndTheRange) {
  const data::PayloadTable table = MakeTable({
      {{"genre", Text("Drama")}, {"year", Whole(1990)}, {"sold", Flag(false)}},
      {{"genre", Text("War")}, {"year", Whole(1972)}, {"sold", Flag(true)}},
      {{"genre", Text("Drama")}, {"year", Whole(1990)}, {"sold", Flag(false)}},
      {{"genre", Text("drama")}},
  });
  const PayloadIndex index = PayloadIndex::Build(table);
  const FieldSummary genre = SummarizeField(*index.Find("genre"), 2);
  EXPECT_EQ(genre.distinct_values, 3U);
  ASSERT_EQ(genre.most_common.size(), 2U);
  EXPECT_EQ(genre.most_common[0].value, SummaryValue("Drama"));
  EXPECT_EQ(genre.most_common[0].rows, 2U);
  EXPECT_EQ(genre.most_common[1].value, SummaryValue("drama"));
  const FieldSummary year = SummarizeField(*index.Find("year"), 2);
  EXPECT_EQ(year.distinct_values, 2U);
  EXPECT_EQ(year.least, SummaryValue(std::int64_t{1972}));
  EXPECT_EQ(year.greatest, SummaryValue(std::int64_t{1990}));
  const FieldSummary sold = SummarizeField(*index.Find("sold"), 1);
  EXPECT_EQ(sold.distinct_values, 2U);
  EXPECT_EQ(sold.least, std::nullopt);
  ASSERT_EQ(sold.most_common.size(), 1U);
  EXPECT_EQ(sold.most_common[0].value, SummaryValue(false));
}

TEST(FieldSummaryTest, HasNumbersAsNumbersAndTimesAsText) {
  const data::PayloadTable table = MakeTable({
      {{"rating", Real(7.5)}, {"added", Text("2024-05-31")}},
      {{"rating", Real(-1)}, {"added", Text("2024-05-31T12:00:00Z")}},
  });
  const PayloadIndex index = PayloadIndex::Build(table);
  const FieldSummary rating = SummarizeField(*index.Find("rating"), 2);
  EXPECT_EQ(rating.least, SummaryValue(-1.0));
  EXPECT_EQ(rating.greatest, SummaryValue(7.5));
  const FieldSummary added = SummarizeField(*index.Find("added"), 2);
  EXPECT_EQ(added.least, SummaryValue("2024-05-31T00:00:00Z"));
  EXPECT_EQ(added.greatest, SummaryValue("2024-05-31T12:00:00Z"));
}

}  // namespace
}  // namespace simile::filter

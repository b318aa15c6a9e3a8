// What `verify` takes filters to mean: values by hand, and filters drawn over rows of which each
// has a near twin.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/verify/filters.h"
#include "cli/verify/sample.h"
#include "engine/sample_data.h"
#include "filter/payload_rows.h"

namespace simile::cli {
namespace {

using filter::Real;
using filter::Text;
using filter::Texts;
using filter::Whole;
using testing::ElementsAre;
using testing::Optional;

constexpr v1::FieldType kText = v1::FIELD_TYPE_KEYWORD;
constexpr v1::FieldType kList = v1::FIELD_TYPE_KEYWORD_LIST;

TEST(FilterMeaningTest, TextsAreEqualByteForByte) {
  for (const char* const other :
       {"ACME", "acme ", " acme", "acm\u00e9", "acme|labs", "", "\uff41cme"}) {
    EXPECT_EQ(EqualsText(kText, Text(other), "acme"), Passing::kNo) << other;
    EXPECT_EQ(EqualsText(kList, Texts({"x", other}), "acme"), Passing::kNo) << other;
  }
  EXPECT_EQ(EqualsText(kText, Text("acme|labs"), "acme|labs"), Passing::kYes);
  EXPECT_EQ(EqualsText(kText, Text(""), ""), Passing::kYes);
  EXPECT_EQ(EqualsText(kList, Texts({"x", "acme"}), "acme"), Passing::kYes);
}

TEST(FilterMeaningTest, ATextInAFieldOfListsIsKnownOnlyWithoutTheElement) {
  EXPECT_EQ(EqualsText(kList, Text("Action|Drama"), "Drama"), Passing::kUnknown);
  EXPECT_EQ(EqualsText(kList, Text("Action|Drama"), "Action|Drama"), Passing::kUnknown);
  EXPECT_EQ(EqualsText(kList, Text("Action|Drama"), "War"), Passing::kNo);
  EXPECT_EQ(GroupTexts(kList, Text("Action|Drama")), std::nullopt);
  EXPECT_THAT(GroupTexts(kText, Text("Action|Drama")), Optional(ElementsAre("Action|Drama")));
  EXPECT_THAT(GroupTexts(kList, Texts({"b", "a"})), Optional(ElementsAre("b", "a")));
}

TEST(FilterMeaningTest, AValueThatDoesNotFitPassesNeitherAConditionNorItsNot) {
  EXPECT_EQ(EqualsText(kText, Whole(7), "7"), Passing::kNeither);
  EXPECT_EQ(EqualsText(kText, Texts({"a"}), "a"), Passing::kNeither);
  EXPECT_EQ(EqualsText(kList, {PayloadList{Text("a"), Whole(1)}}, "a"), Passing::kNeither);
  EXPECT_EQ(Negated(Passing::kNeither), Passing::kNeither);
  EXPECT_EQ(Negated(EqualsText(kText, {}, "a")), Passing::kYes);  // a missing field
  EXPECT_THAT(GroupTexts(kText, Whole(7)), Optional(ElementsAre()));
  const NumberComparison& unequal = NumberComparisons()[1];
  ASSERT_EQ(unequal.symbol, "!=");
  EXPECT_EQ(Compares(v1::FIELD_TYPE_INTEGER, Real(1.5), unequal, 2), Passing::kNeither);
  EXPECT_EQ(Compares(v1::FIELD_TYPE_INTEGER, Real(1.0), unequal, 2), Passing::kYes);
  EXPECT_EQ(Compares(v1::FIELD_TYPE_NUMBER, Real(1.5), unequal, 2), Passing::kYes);
  EXPECT_EQ(Compares(v1::FIELD_TYPE_NUMBER, {}, unequal, 2), Passing::kNo);
}

TEST(FilterMeaningTest, LargeIntegersCompareExactly) {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 53) + 1;
  for (const NumberComparison& comparison : NumberComparisons()) {
    const auto with = [&](std::int64_t bound) {
      return Compares(v1::FIELD_TYPE_NUMBER, Whole(kLarge), comparison, bound) == Passing::kYes;
    };
    EXPECT_EQ(with(kLarge - 1), comparison.above) << comparison.symbol;
    EXPECT_EQ(with(kLarge), comparison.equal) << comparison.symbol;
    EXPECT_EQ(with(kLarge + 1), comparison.below) << comparison.symbol;
  }
}

TEST(FilterMeaningTest, KnowsTheFoldingOfAsciiAlone) {
  EXPECT_THAT(AsciiFolded("Toy Story 2!"), Optional(std::string("toy story 2!")));
  for (const char* const other : {"Am\u00e9lie", "a  b", " a", "a ", "a\tb", "a\x7f"}) {
    EXPECT_EQ(AsciiFolded(other), std::nullopt) << other;
  }
  EXPECT_EQ(HasText(kText, Text("Toy Story"), "y st"), Passing::kYes);
  EXPECT_EQ(HasText(kText, Text("Toy Story"), "sea"), Passing::kNo);
  EXPECT_EQ(HasText(kText, Text("Am\u00e9lie"), "amelie"), Passing::kUnknown);
  EXPECT_EQ(HasText(kList, Texts({"Sci-Fi"}), "sci"), Passing::kNo);
  EXPECT_EQ(HasText(kList, Texts({"\u00e9", "Sci-Fi"}), "sci-fi"), Passing::kYes);
  EXPECT_EQ(HasText(kList, Texts({"\u00e9", "Sci-Fi"}), "e"), Passing::kUnknown);
  EXPECT_EQ(HasText(kList, Text("Sci-Fi"), "sci-fi"), Passing::kUnknown);
}

// A collection of these values of one field.
struct OneField {
  OneField(v1::FieldType type, const std::vector<PayloadValue>& values)
      : dataset(engine::RandomDataset(values.size(), 4, 1)) {
    std::vector<PayloadObject> rows;
    rows.reserve(values.size());
    for (const PayloadValue& value : values) rows.push_back({{"f", value}});
    dataset->payload = filter::MakeTable(rows);
    v1::PayloadField& field = *served.add_fields();
    field.set_name("f");
    field.set_type(type);
  }

  std::shared_ptr<data::Dataset> dataset;
  v1::Collection served;
  Oracle oracle{*dataset};
  SampleDraw draw{oracle, served, 1};
};

// The drawn filters by their text.
std::map<std::string, std::vector<bool>> DrawMany(OneField& field) {
  std::map<std::string, std::vector<bool>> drawn;
  for (int i = 0; i < 20'000; ++i) {
    const auto filter = DrawFilter(field.draw);
    if (filter) drawn[filter->text] = filter->passes;
  }
  return drawn;
}

TEST(FilterDrawTest, EqualityTellsNearTwinsApart) {
  OneField field(kText, {Text("acme"), Text("ACME"), Text("a\u0001\"\\"), Whole(1), {}});
  const auto drawn = DrawMany(field);
  const std::map<std::string, std::vector<bool>> expected = {
      {R"("f" = "acme")", {true, false, false, false, false}},
      {R"("f" != "acme")", {false, true, true, false, false}},
      {R"("f" NOT IN ["acme"])", {false, true, true, false, true}},
      {R"("f" IN ["acme", "ACME"])", {true, true, false, false, false}},
      {R"("f" = "acme" AND NOT "f" != "acme")", {true, false, false, false, false}},
      {R"("f" = "a\u0001\"\\")", {false, false, true, false, false}},
      {R"("f" = "acme ")", {false, false, false, false, false}}};
  for (const auto& [text, passes] : expected) {
    ASSERT_TRUE(drawn.contains(text)) << text;
    EXPECT_EQ(drawn.at(text), passes) << text;
  }
}

TEST(FilterDrawTest, AsksForPartsAmongRowsOfPlainTextOnly) {
  OneField field(kText, {Text("Night River"), Text("River"), Text("R\u00edver"), Text("Sea")});
  std::set<std::string> parts;
  for (const auto& [text, passes] : DrawMany(field)) {
    if (!text.starts_with("(") || !text.ends_with("])") || text.find(" OR ") != text.npos) continue;
    EXPECT_FALSE(passes[2]) << text;
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("\"2\""))) << text;  // its id
    parts.insert(text.substr(0, text.find(" AND")));
  }
  EXPECT_GT(parts.size(), 100U);
}

TEST(FilterDrawTest, DrawsNothingWhoseMeaningIsUnknown) {
  OneField field(kList, {Text("a|b"), Text("b"), Texts({"b"})});
  for (const auto& [text, passes] : DrawMany(field)) {
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("f\" = \"b\""))) << text;
  }
  EXPECT_FALSE(DrawKeywordField(field.draw).has_value());
}

TEST(FilterDrawTest, GroupsByTheBytesOfAText) {
  OneField field(kText, {Text("a"), Text("A"), Text("a"), Text("a|b"), Whole(1)});
  const auto drawn = DrawKeywordField(field.draw);
  ASSERT_TRUE(drawn.has_value());
  std::map<std::string, std::vector<Row>> rows;
  for (const KeywordRows& keyword : drawn->keywords) rows[keyword.keyword] = keyword.rows;
  EXPECT_THAT(rows,
              ElementsAre(testing::Pair("A", ElementsAre(1)), testing::Pair("a", ElementsAre(0, 2)),
                          testing::Pair("a|b", ElementsAre(3))));
}

}  // namespace
}  // namespace simile::cli

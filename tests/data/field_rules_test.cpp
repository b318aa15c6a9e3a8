#include "data/payload/field_rules.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"

namespace simile::data {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PayloadValue Text(std::string text) { return {std::move(text)}; }
PayloadValue Whole(std::int64_t number) { return {number}; }
PayloadValue Texts(const std::string& text) { return {PayloadList{Text(text)}}; }

// A hundred values: `odd` in the rows from 57 on, `usual` in the rows before and after.
struct Column {
  PayloadValue usual;
  PayloadValue odd;
  int odd_count = 1;
};

FieldInfo MakeField(const Column& column) {
  FieldInfo field;
  field.name = "f";
  for (int row = 0; row < 100; ++row) {
    const bool is_odd = row >= 57 && row < 57 + column.odd_count;
    field.values.Add(static_cast<Row>(row), is_odd ? column.odd : column.usual);
  }
  return field;
}

struct Chosen {
  absl::Status status;
  FieldInfo field;
  std::vector<std::string> notes;
};

Chosen Choose(const Column& column, const FieldRules& rules = {}) {
  Chosen chosen;
  chosen.field = MakeField(column);
  chosen.status = ChooseFieldTypes(rules, "m.jsonl", {&chosen.field, 1}, chosen.notes);
  return chosen;
}

FieldRules Keeping(FieldType type, bool may_change = false) {
  FieldRules rules;
  rules.kept = {{{"f", type, {}, false}}, may_change};
  return rules;
}

struct TypeCase {
  FieldType type;
  Column column;
  std::string odd_text;
};

// One odd value in a hundred, for each type that filters compare.
std::vector<TypeCase> OddCells() {
  return {
      {FieldType::kKeyword, {Text("a"), Whole(7)}, "7"},
      {FieldType::kKeyword, {Text("a"), Texts("b")}, "a list of texts"},
      {FieldType::kKeywords, {Texts("a"), Whole(7)}, "7"},
      {FieldType::kInteger, {Whole(1), Text("N/A")}, "\"N/A\""},
      {FieldType::kInteger, {Whole(1), PayloadValue{PayloadList{}}}, "an empty list"},
      {FieldType::kIntegers, {PayloadValue{PayloadList{Whole(1)}}, Texts("1")}, "a list of texts"},
      {FieldType::kBooleans, {PayloadValue{PayloadList{{true}}}, Whole(1)}, "1"},
      {FieldType::kInteger, {Whole(1), Text("")}, "\"\""},
      {FieldType::kNumber, {PayloadValue{0.5}, Text("N/A")}, "\"N/A\""},
      {FieldType::kBoolean, {PayloadValue{true}, Text("yes")}, "\"yes\""},
      {FieldType::kBoolean, {PayloadValue{true}, Whole(1)}, "1"},
      {FieldType::kTime, {Text("2024-05-31T00:00:00Z"), Text("")}, "\"\""},
      {FieldType::kTime, {Text("2024-05-31T00:00:00Z"), Whole(5)}, "5"}};
}

TEST(FieldRulesTest, FollowsMostValuesAtAFirstLoadAndNamesTheOddOne) {
  for (const TypeCase& each : OddCells()) {
    const Chosen chosen = Choose(each.column);
    EXPECT_EQ(chosen.field.type, each.type) << each.odd_text;
    EXPECT_THAT(chosen.notes, ElementsAre(fmt::format(
                                  "m.jsonl: \"f\" is of type {}; 1 of its 100 values does not "
                                  "fit and passes no filter: {} in row 57",
                                  NameOf(each.type), each.odd_text)));
  }
}

TEST(FieldRulesTest, KeepsTheServedTypeWhateverAFirstLoadWouldGuess) {
  for (TypeCase each : OddCells()) {
    for (const int odd_count : {0, 1, 30, 43}) {
      each.column.odd_count = odd_count;
      const Chosen chosen = Choose(each.column, Keeping(each.type));
      ASSERT_EQ(chosen.status, absl::OkStatus());
      EXPECT_EQ(chosen.field.type, each.type);
      EXPECT_EQ(chosen.notes.size(), odd_count == 0 ? 0U : 1U);
    }
  }
}

TEST(FieldRulesTest, RefusesMostValuesOfAnotherTypeUnlessThatIsAllowed) {
  const Column column{Text("soon"), Whole(1), 20};
  const Chosen refused = Choose(column, Keeping(FieldType::kInteger));
  EXPECT_EQ(base::ReasonOf(refused.status), base::ErrorReason::kShapeChange);
  EXPECT_EQ(
      refused.status.message(),
      "allow_shape_change: m.jsonl: \"f\" was last served as integer, and 80 of its 100 values do "
      "not fit, the first is \"soon\" in row 0: filters that callers saved would no longer "
      "mean the same; set it to accept that");
  const Chosen allowed = Choose(column, Keeping(FieldType::kInteger, true));
  ASSERT_EQ(allowed.status, absl::OkStatus());
  EXPECT_EQ(allowed.field.type, FieldType::kOther);
  EXPECT_THAT(allowed.notes, Contains(HasSubstr("is of type other now; it was integer")));
}

TEST(FieldRulesTest, DoesNotKeepATypeThatNoFilterCompares) {
  EXPECT_EQ(Choose({Whole(1), Whole(1)}, Keeping(FieldType::kOther)).field.type,
            FieldType::kInteger);
}

TEST(FieldRulesTest, LetsSettingsChangeTheServedTypeAndSaysSo) {
  FieldRules rules = Keeping(FieldType::kInteger);
  rules.declared = {{"f", FieldType::kKeyword}};
  const Chosen chosen = Choose({Text("1990"), Text("1991")}, rules);
  EXPECT_EQ(chosen.field.type, FieldType::kKeyword);
  EXPECT_TRUE(chosen.field.has_lasting_meaning);
  EXPECT_THAT(chosen.notes, ElementsAre("m.jsonl: \"f\" is of type keyword now, as collection.json "
                                        "says; it was integer"));
}

TEST(FieldRulesTest, ReadsANumberWithoutAFractionAsAnInteger) {
  const Chosen whole =
      Choose({Whole(1990), PayloadValue{1990.0}, 40}, Keeping(FieldType::kInteger));
  EXPECT_THAT(whole.notes, IsEmpty());
  const Chosen first = Choose({Whole(1990), PayloadValue{10.5}});
  EXPECT_EQ(first.field.type, FieldType::kNumber);
  EXPECT_THAT(first.notes,
              ElementsAre("m.jsonl: \"f\" is of type number, not integer, because 1 of "
                          "its 100 values has a fraction: 10.5 in row 57"));
  const Chosen kept = Choose({Whole(1990), PayloadValue{10.5}}, Keeping(FieldType::kInteger));
  EXPECT_THAT(kept.notes,
              ElementsAre(HasSubstr("does not fit and passes no filter: 10.5 in row 57")));
}

TEST(FieldRulesTest, SaysWhichSettingSeparatesTextsWithBars) {
  const Chosen many = Choose({Text("a"), Text("a|b"), 20});
  EXPECT_EQ(many.field.type, FieldType::kKeyword);
  EXPECT_THAT(many.notes,
              ElementsAre("m.jsonl: \"f\" is of type keyword; 20 of its 100 values hold a bar, the "
                          "first is \"a|b\" in row 57; if the bar separates keywords, add "
                          "\"separators\": {\"f\": \"|\"} to collection.json"));
  EXPECT_THAT(Choose({Text("a"), Text("a|b"), 5}).notes, IsEmpty());
  FieldRules rules;
  rules.separators = {{"f", "|"}};
  const Chosen separated = Choose({Text("a"), Text("a|b"), 20}, rules);
  EXPECT_EQ(separated.field.type, FieldType::kKeywords);
  EXPECT_EQ(separated.field.separator, "|");
  EXPECT_THAT(separated.notes, IsEmpty());
}

TEST(FieldRulesTest, SaysWhatTextsAreThatHoldNumbersOrLists) {
  const auto note = [](const char* what) {
    return fmt::format("m.jsonl: \"f\" is of type keyword; {}", what);
  };
  EXPECT_THAT(Choose({Text("30"), Text("-4.5e3"), 20}).notes,
              ElementsAre(note("100 of its 100 values are numbers as text, the first is \"30\" in "
                               "row 0; write them without quotes to compare them as numbers")));
  EXPECT_THAT(Choose({Text("0.5"), Text("N/A"), 10}).notes,
              ElementsAre(note("90 of its 100 values are numbers as text, the first is \"0.5\" in "
                               "row 0; write them without quotes to compare them as numbers")));
  for (const char* const list : {"[\"rock\"]", "['rock', 'folk']", "[]", "[1, 2]", "[{'id': 1}]"}) {
    EXPECT_THAT(Choose({Text("['a']"), Text(list), 43}).notes,
                ElementsAre(note("100 of its 100 values are lists as text, the first is "
                                 "\"['a']\" in row 0; write them as JSON lists to compare "
                                 "their elements")));
  }
  for (const char* const text : {"", "-", "007", "1,5", "1.", "5.e3", "30 min", "1995-06", "0x1F",
                                 "+5", "inf", ".5", "[REC]", "[", "[1, 2] x"}) {
    EXPECT_THAT(Choose({Text(text), Text(text)}).notes, IsEmpty()) << text;
  }
  EXPECT_THAT(Choose({Text("30"), Text("N/A"), 11}).notes, IsEmpty());
  FieldRules declared;
  declared.declared = {{"f", FieldType::kKeyword}};
  EXPECT_THAT(Choose({Text("30"), Text("30")}, declared).notes, IsEmpty());
}

TEST(FieldRulesTest, AsksForNoNumbersInAFieldOfIds) {
  FieldInfo field;
  field.name = "recipe_id";
  for (Row row = 0; row < 100; ++row) field.values.Add(row, Text("12"));
  std::vector<std::string> notes;
  ASSERT_EQ(ChooseFieldTypes({}, "m.jsonl", {&field, 1}, notes), absl::OkStatus());
  EXPECT_THAT(notes, IsEmpty());
}

TEST(FieldRulesTest, KeepsTheSeparatorThatIsServed) {
  FieldRules rules;
  rules.kept = {{{"f", FieldType::kKeywords, "|", true}}, false};
  const Column column{Text("a|b"), Text("a"), 20};
  const Chosen kept = Choose(column, rules);
  EXPECT_EQ(kept.field.type, FieldType::kKeywords);
  EXPECT_EQ(kept.field.separator, "|");
  EXPECT_TRUE(kept.field.is_kept_otherwise);
  EXPECT_TRUE(kept.field.has_lasting_meaning);
  EXPECT_THAT(kept.notes, IsEmpty());
  rules.separators = {{"f", ";"}};
  const Chosen changed = Choose(column, rules);
  EXPECT_EQ(changed.field.separator, ";");
  EXPECT_FALSE(changed.field.is_kept_otherwise);
  EXPECT_THAT(changed.notes, ElementsAre("m.jsonl: \"f\" has the separator \";\" now, as "
                                         "collection.json says; it had the separator \"|\""));
}

TEST(FieldRulesTest, KeepsALastingMeaningWithTheTypeThoughACellIsOdd) {
  FieldRules rules;
  rules.kept = {{{"f", FieldType::kInteger, {}, true}}, false};
  EXPECT_TRUE(Choose({Whole(1), Text("N/A")}, rules).field.has_lasting_meaning);
  EXPECT_FALSE(Choose({Whole(1), Text("N/A")}).field.has_lasting_meaning);
  EXPECT_FALSE(
      Choose({Whole(1), Text("N/A")}, Keeping(FieldType::kInteger)).field.has_lasting_meaning);
}

TEST(FieldRulesTest, NamesAKeptFieldThatNoRowHasNow) {
  FieldRules rules = Keeping(FieldType::kInteger);
  rules.kept.types.push_back({"gone", FieldType::kTime, {}, false});
  EXPECT_THAT(Choose({Whole(1), Whole(2)}, rules).notes,
              ElementsAre("m.jsonl: \"gone\" is in no row now; it was time, and filters on it are "
                          "refused like filters on an unknown field"));
}

TEST(FieldRulesTest, JudgesNoIds) {
  FieldInfo ids;
  ids.name = "id";
  for (Row row = 0; row < 100; ++row) ids.values.Add(row, row == 57 ? Text("a") : Whole(row));
  FieldRules rules;
  rules.kept = {{{"id", FieldType::kKeyword, {}, true}}, false};
  std::vector<std::string> notes;
  ASSERT_EQ(ChooseFieldTypes(rules, "m.jsonl", {&ids, 1}, notes), absl::OkStatus());
  EXPECT_EQ(ids.type, FieldType::kOther);
  EXPECT_THAT(notes, IsEmpty());
}

TEST(FieldRulesTest, SaysHowTimesWereRead) {
  EXPECT_THAT(
      Choose({Text("2024-05-31 12:00:00"), Text("2024-05-31T12:00:00Z")}).notes,
      ElementsAre("m.jsonl: \"f\" is of type time; 99 of its 100 values have no zone and are "
                  "read as UTC, the first is \"2024-05-31 12:00:00\" in row 0"));
  EXPECT_THAT(
      Choose({Text("2024-05-31"), Text("soon"), 20}).notes,
      ElementsAre("m.jsonl: \"f\" is of type keyword, not time, because 20 of its 100 values "
                  "are no times, the first is \"soon\" in row 57; \"field_types\": {\"f\": "
                  "\"time\"} in collection.json makes it a time"));
}

TEST(FieldRulesTest, SaysWhatListsHold) {
  const auto list = [](PayloadList elements) { return PayloadValue{std::move(elements)}; };
  const Chosen numbers = Choose({list({Whole(1), Whole(2)}), list({Whole(1), PayloadValue{0.5}})});
  EXPECT_EQ(numbers.field.type, FieldType::kNumbers);
  EXPECT_THAT(
      numbers.notes,
      ElementsAre("m.jsonl: \"f\" is of type list of numbers, not list of integers, because "
                  "1 of its 100 values has a fraction: a list of numbers in row 57"));
  const Chosen odd = Choose({list({Whole(1)}), list({Whole(1), Text("1")})});
  EXPECT_EQ(odd.field.type, FieldType::kIntegers);
  EXPECT_THAT(
      odd.notes,
      ElementsAre("m.jsonl: \"f\" is of type list of integers; 1 of its 100 values does not "
                  "fit and passes no filter: a list with an integer and a string in row 57"));
  const Chosen mixed = Choose({list({Text("1"), Whole(1)}), Text("1")});
  EXPECT_EQ(mixed.field.type, FieldType::kOther);
  const Chosen lists = Choose({list({list({})}), list({list({})})});
  EXPECT_THAT(lists.notes,
              ElementsAre("m.jsonl: \"f\" holds a list of lists in row 0; filters can only ask "
                          "whether a row has it, and compare the elements of a list of texts, of "
                          "numbers or of booleans"));
}

TEST(FieldRulesTest, SaysThatListsOfObjectsAreNotRead) {
  const PayloadValue cast{PayloadList{{PayloadObject{{"name", Text("a")}}}}};
  const Chosen chosen = Choose({cast, cast});
  EXPECT_EQ(chosen.field.type, FieldType::kOther);
  EXPECT_THAT(
      chosen.notes,
      ElementsAre("m.jsonl: \"f\" holds lists of objects, the first in row 0, which filters "
                  "do not read; a list of one of their members can be compared, which "
                  "jq -c '.f_NAME = [.f[]?.NAME]' adds"));
}

TEST(FieldRulesTest, TellsValuesOfOneReading) {
  EXPECT_TRUE(MakeField({Text("a"), Text("2024-05-31")}).values.HaveOneReading());
  EXPECT_TRUE(MakeField({Whole(1), Whole(2)}).values.HaveOneReading());
  EXPECT_TRUE(MakeField({PayloadValue{true}, PayloadValue{false}}).values.HaveOneReading());
  EXPECT_FALSE(MakeField({Text("2024-05-31"), Text("2024-05-31")}).values.HaveOneReading());
  EXPECT_FALSE(MakeField({Text("a"), Whole(2)}).values.HaveOneReading());
  EXPECT_FALSE(MakeField({PayloadValue{0.5}, Whole(2)}).values.HaveOneReading());
  EXPECT_FALSE(MakeField({Texts("a"), Texts("b")}).values.HaveOneReading());
  EXPECT_FALSE(FieldValues().HaveOneReading());
}

}  // namespace
}  // namespace simile::data

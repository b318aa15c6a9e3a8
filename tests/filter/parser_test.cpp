#include "filter/parser.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "certificate/seeded_random.h"
#include "filter/operators.h"

namespace simile::filter {

// Columns are left out: they say where something was written, not what it means.
bool operator==(const Literal& left, const Literal& right) {
  return left.text == right.text && left.quoted == right.quoted;
}
bool operator==(const Expression& left, const Expression& right) {
  return left.kind == right.kind && left.children == right.children && left.field == right.field &&
         left.is_folded == right.is_folded && left.literals == right.literals &&
         (left.kind != Expression::Kind::kCompare || left.comparison == right.comparison);
}
void PrintTo(const Expression& expression, std::ostream* out) { *out << ToText(expression); }

namespace {

using simile::tests::SeededRandom;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

Literal Bare(std::string text) { return {.text = std::move(text), .quoted = false, .column = 1}; }
Literal Quoted(std::string text) { return {.text = std::move(text), .quoted = true, .column = 1}; }

Expression Has(std::string field) {
  Expression expression;
  expression.kind = Expression::Kind::kHas;
  expression.field = std::move(field);
  return expression;
}
Expression In(std::string field, std::vector<Literal> literals) {
  Expression expression = Has(std::move(field));
  expression.kind = Expression::Kind::kIn;
  expression.literals = std::move(literals);
  return expression;
}
Expression Compare(std::string field, std::string_view symbol, Literal literal) {
  Expression expression = In(std::move(field), {std::move(literal)});
  expression.kind = Expression::Kind::kCompare;
  expression.comparison = &FindOperator(symbol);
  return expression;
}
Expression Joined(Expression::Kind kind, std::vector<Expression> children) {
  Expression expression;
  expression.kind = kind;
  expression.children = std::move(children);
  return expression;
}
Expression And(std::vector<Expression> children) {
  return Joined(Expression::Kind::kAnd, std::move(children));
}
Expression Or(std::vector<Expression> children) {
  return Joined(Expression::Kind::kOr, std::move(children));
}
Expression Not(Expression child) { return Joined(Expression::Kind::kNot, {std::move(child)}); }
// A comparison that only its field identifies.
Expression Leaf(std::string field) { return Compare(std::move(field), "=", Bare("1")); }

Expression Parsed(std::string_view filter) {
  absl::StatusOr<Expression> expression = Parse(filter);
  EXPECT_TRUE(expression.ok()) << filter << ": " << expression.status();
  return expression.ok() ? *std::move(expression) : Expression();
}

std::string ReadError(std::string_view filter) {
  const absl::Status status = Parse(filter).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << filter;
  return std::string(status.message());
}

std::string Repeated(std::string_view text, std::size_t count) {
  std::string repeated;
  for (std::size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

struct Case {
  std::string_view filter;
  std::string_view answer;
};

// Lines of `filter -> answer`, in which nothing is escaped.
std::vector<Case> Table(std::string_view table) {
  constexpr std::string_view kArrow = " -> ";
  std::vector<Case> cases;
  table.remove_prefix(1);
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    const std::size_t arrow = line.find(kArrow);
    cases.push_back({line.substr(0, arrow), line.substr(arrow + kArrow.size())});
    table.remove_prefix(line.size() + 1);
  }
  return cases;
}

void ExpectMessages(const std::vector<Case>& cases) {
  for (const auto& [filter, message] : cases) EXPECT_EQ(ReadError(filter), message) << filter;
}

// The text of each filter, which must be its own text.
void ExpectTexts(const std::vector<Case>& cases) {
  for (const auto& [filter, text] : cases) {
    EXPECT_EQ(ToText(Parsed(filter)), text) << filter;
    EXPECT_EQ(ToText(Parsed(text)), text) << filter;
  }
}

TEST(ParserTest, ReadsComparisons) {
  EXPECT_EQ(Parsed("year = 1990"), Compare("year", "=", Bare("1990")));
  EXPECT_EQ(Parsed("year!=1990"), Compare("year", "!=", Bare("1990")));
  EXPECT_EQ(Parsed("year<-5"), Compare("year", "<", Bare("-5")));
  EXPECT_EQ(Parsed("year <= +5"), Compare("year", "<=", Bare("+5")));
  EXPECT_EQ(Parsed("rating > .5"), Compare("rating", ">", Bare(".5")));
  EXPECT_EQ(Parsed("rating >= 7.5e0"), Compare("rating", ">=", Bare("7.5e0")));
  EXPECT_EQ(Parsed("genres:\"Sci-Fi\""), Compare("genres", ":", Quoted("Sci-Fi")));
  EXPECT_EQ(Parsed("genres : Drama"), Compare("genres", ":", Bare("Drama")));
}

TEST(ParserTest, TellsQuotedValuesFromBareOnes) {
  EXPECT_EQ(Parsed("year = \"1990\""), Compare("year", "=", Quoted("1990")));
  EXPECT_EQ(Parsed("title = 'Solaris'"), Compare("title", "=", Quoted("Solaris")));
  EXPECT_EQ(Parsed("title = Solaris"), Compare("title", "=", Bare("Solaris")));
  EXPECT_EQ(Parsed("available = true"), Compare("available", "=", Bare("true")));
  EXPECT_EQ(Parsed("title = \"null\""), Compare("title", "=", Quoted("null")));
  EXPECT_EQ(Parsed("title = \"\""), Compare("title", "=", Quoted("")));
}

TEST(ParserTest, ReadsWordsOfAnyScript) {
  EXPECT_EQ(Parsed("название = Солярис"), Compare("название", "=", Bare("Солярис")));
  EXPECT_EQ(Parsed("題名:千尋"), Compare("題名", ":", Bare("千尋")));
  EXPECT_EQ(Parsed("a.b-c_d+e = 🎬"), Compare("a.b-c_d+e", "=", Bare("🎬")));
  EXPECT_EQ(Parsed("3d = true"), Compare("3d", "=", Bare("true")));
}

TEST(ParserTest, TakesAnyFieldInQuotes) {
  EXPECT_EQ(Parsed("\"release year\" = 1990"), Compare("release year", "=", Bare("1990")));
  EXPECT_EQ(Parsed("'AND' = 1"), Leaf("AND"));
  EXPECT_EQ(Parsed("\"1990\" = 1"), Leaf("1990"));
  EXPECT_EQ(Parsed("\"-x\" = 1"), Leaf("-x"));
  EXPECT_EQ(Parsed("has(\"release year\")"), Has("release year"));
}

TEST(ParserTest, ReadsHasAndItsShortForm) {
  EXPECT_EQ(Parsed("has(year)"), Has("year"));
  EXPECT_EQ(Parsed("HAS ( year )"), Has("year"));
  EXPECT_EQ(Parsed("year:*"), Has("year"));
  EXPECT_EQ(Parsed("year : *"), Has("year"));
  EXPECT_EQ(Parsed("year:\"*\""), Compare("year", ":", Quoted("*")));
  EXPECT_EQ(Parsed("has = 1"), Leaf("has"));
  EXPECT_EQ(Parsed("has(has)"), Has("has"));
  EXPECT_EQ(Parsed("title = has"), Compare("title", "=", Bare("has")));
}

TEST(ParserTest, ReadsLists) {
  EXPECT_EQ(Parsed("id IN [\"a\", 'b',c]"), In("id", {Quoted("a"), Quoted("b"), Bare("c")}));
  EXPECT_EQ(Parsed("id in[1]"), In("id", {Bare("1")}));
  EXPECT_EQ(Parsed("id NOT IN [a]"), Not(In("id", {Bare("a")})));
  EXPECT_EQ(Parsed("NOT id IN [a]"), Not(In("id", {Bare("a")})));
  EXPECT_EQ(Parsed("NOT id not in [a]"), Not(Not(In("id", {Bare("a")}))));
}

TEST(ParserTest, BindsNotTighterThanAndAndOr) {
  EXPECT_EQ(Parsed("NOT a = 1 AND b = 1"), And({Not(Leaf("a")), Leaf("b")}));
  EXPECT_EQ(Parsed("a = 1 OR NOT b = 1"), Or({Leaf("a"), Not(Leaf("b"))}));
  EXPECT_EQ(Parsed("NOT (a = 1 AND b = 1)"), Not(And({Leaf("a"), Leaf("b")})));
  EXPECT_EQ(Parsed("NOT NOT a = 1"), Not(Not(Leaf("a"))));
  EXPECT_EQ(Parsed("NOT(NOT(a = 1))"), Not(Not(Leaf("a"))));
}

TEST(ParserTest, FlattensWhatParenthesesDoNotChange) {
  const Expression three = And({Leaf("a"), Leaf("b"), Leaf("c")});
  EXPECT_EQ(Parsed("a = 1 AND b = 1 AND c = 1"), three);
  EXPECT_EQ(Parsed("a = 1 AND (b = 1 AND c = 1)"), three);
  EXPECT_EQ(Parsed("((a = 1 AND (b = 1)) AND c = 1)"), three);
  EXPECT_EQ(Parsed("a = 1 AND (b = 1 OR c = 1)"), And({Leaf("a"), Or({Leaf("b"), Leaf("c")})}));
  EXPECT_EQ(Parsed("(a = 1 AND b = 1) OR c = 1"), Or({And({Leaf("a"), Leaf("b")}), Leaf("c")}));
}

TEST(ParserTest, TakesKeywordsInAnyLetterCase) {
  EXPECT_EQ(Parsed("not a = 1 And b = 1 aNd Has(c) AND d iN [1]"),
            And({Not(Leaf("a")), Leaf("b"), Has("c"), In("d", {Bare("1")})}));
  EXPECT_EQ(Parsed("a=1 or b=1"), Or({Leaf("a"), Leaf("b")}));
}

TEST(ParserTest, TakesAnyWhiteSpaceBetweenTokens) {
  EXPECT_EQ(Parsed("\n\ta\r\n=\t1\nAND(b=1)"), And({Leaf("a"), Leaf("b")}));
  EXPECT_EQ(Parsed("a=\"1\"AND b=\"1\""),
            And({Compare("a", "=", Quoted("1")), Compare("b", "=", Quoted("1"))}));
}

TEST(ParserTest, ResolvesEscapes) {
  const auto text = [](std::string_view filter) { return Parsed(filter).literals.at(0).text; };
  EXPECT_EQ(text(R"(a = "\"\'\\\n\t")"), "\"'\\\n\t");
  EXPECT_EQ(text(R"(a = 'it\'s "so"')"), "it's \"so\"");
  EXPECT_EQ(text(R"(a = "it's")"), "it's");
  EXPECT_EQ(text(R"(a = "\u0041\u00e9\u4E2D\ud83c\udfac")"), "Aé中🎬");
  EXPECT_EQ(text(R"(a = "\u0000")"), std::string(1, '\0'));
  EXPECT_EQ(text("a = \"“curly” and\u00a0hard\""), "“curly” and\u00a0hard");
}

TEST(ParserTest, GivesEveryPartItsColumn) {
  const Expression expression = Parsed("(título = \"日本\") AND NOT x NOT IN [a, \"🎬\", c]");
  const Expression& compare = expression.children.at(0);
  const Expression& negated = expression.children.at(1);
  const Expression& in = negated.children.at(0).children.at(0);
  EXPECT_THAT((std::vector{expression.column, compare.column, compare.literals.at(0).column,
                           negated.column, negated.children.at(0).column, in.column}),
              ElementsAre(1U, 2U, 11U, 21U, 25U, 25U));
  EXPECT_THAT(
      (std::vector{in.literals.at(0).column, in.literals.at(1).column, in.literals.at(2).column}),
      ElementsAre(35U, 38U, 43U));
  EXPECT_EQ(Parsed("  has(a)").column, 3U);
  EXPECT_EQ(Parsed("  a:*").column, 3U);
}

TEST(ParserTest, NamesTheTwoReadingsOfAndBesideOr) {
  const std::string why =
      ": AND and OR are mixed without parentheses, which people read in two ways; write ";
  for (const auto& [filter, answer] : Table(R"(
a = 1 AND b = 2 OR c = 3 -> 17: (a = 1 AND b = 2) OR c = 3, or a = 1 AND (b = 2 OR c = 3)
a=1  or (b = 2  OR d:e) and NOT c = 3 -> 25: a=1 OR ((b = 2  OR d:e) AND NOT c = 3), or (a=1 OR (b = 2  OR d:e)) AND NOT c = 3
a:1 AND b:2 AND c:3 OR d:4 -> 21: (a:1 AND b:2 AND c:3) OR d:4, or a:1 AND b:2 AND (c:3 OR d:4)
x:0 AND (a:1 OR b:2 AND c:3 OR d:4) -> 21: a:1 OR (b:2 AND c:3) OR d:4, or (a:1 OR b:2) AND (c:3 OR d:4)
a:1 AND b:2 AND c:3 AND d:4 OR e:5 OR f:6 -> 29: for instance (c:3 AND d:4) OR e:5, or c:3 AND (d:4 OR e:5)
a = éééééééééééééééééééééééééééééééééééééééé AND b:2 OR c:3 -> 54: (a = éééééééééééééééééééééééééééééééééééé... AND b:2) OR c:3, or a = éééééééééééééééééééééééééééééééééééé... AND (b:2 OR c:3)
)")) {
    std::string message = "column " + std::string(answer);
    message.replace(message.find(": "), 2, why);
    EXPECT_EQ(ReadError(filter), message) << filter;
  }
  EXPECT_THAT(
      ReadError("a:1 AND\n(b:2\n\tAND d:4) OR c:3"),
      EndsWith("write (a:1 AND (b:2  AND d:4)) OR c:3, or a:1 AND ((b:2  AND d:4) OR c:3)"));
}

TEST(ParserTest, SaysHowOperatorsOfOtherLanguagesAreWritten) {
  ExpectMessages(Table(R"(
year == 1990 -> column 6: == is no operator here; write =
year === 1990 -> column 6: === is no operator here; write =
year <> 1990 -> column 6: <> is no operator here; write !=
year =! 1990 -> column 6: =! is no operator here; write !=
year =< 1990 -> column 6: =< is no operator here; write <=
year => 1990 -> column 6: => is no operator here; write >=
year ≥ 1990 -> column 6: ≥ is no operator here; write >=
year≤1990 -> column 5: ≤ is no operator here; write <=
title ~ "x" -> column 7: ~ is no operator here; write :
a = 1 && b = 2 -> column 7: && is no operator here; write AND
a = 1 || b = 2 -> column 7: || is no operator here; write OR
!available = true -> column 1: ! is no operator here; write NOT
a = 1 AND !(b = 2) -> column 11: ! is no operator here; write NOT
year > = 1990 -> column 6: > = is no operator here; write >=
year ! = 1990 -> column 6: ! = is no operator here; write !=
year:>1990 -> column 6: expected a value after :, found >; write year > 1990
)"));
}

TEST(ParserTest, SaysHowANegationIsWritten) {
  ExpectMessages(Table(R"(
-genres:Horror -> column 1: - is no operator here; write NOT genres, or "-genres" for a field of that name
a = 1 AND -(b = 2) -> column 11: - is no operator here; write NOT
year NOT = 1990 -> column 6: expected =, !=, <, <=, >, >=, : or IN after year, found NOT; to negate a condition, write NOT before its field
)"));
}

TEST(ParserTest, SaysHowWordsOfOtherLanguagesAreWritten) {
  ExpectMessages(Table(R"(
title LIKE "%toy%" -> column 7: LIKE is no operator here; write title:"toy"
title like 'toy' -> column 7: like is no operator here; write title:'toy'
title LIKE -> column 7: LIKE is no operator here; write title:"text"
title LIKE "%" -> column 7: LIKE is no operator here; write title:"%"
title NOT LIKE "toy%" -> column 11: LIKE is no operator here; write NOT title:"toy"
genres CONTAINS "Sci-Fi" -> column 8: CONTAINS is no operator here; write genres:"Sci-Fi"
year BETWEEN 1990 AND 2000 -> column 6: BETWEEN is no operator here; write year >= 1990 AND year <= 2000
year NOT BETWEEN 1985 AND 1995 -> column 10: BETWEEN is no operator here; write NOT (year >= 1985 AND year <= 1995)
year BETWEEN -> column 6: BETWEEN is no operator here; write year >= 1990 AND year <= 1999
year IS NULL -> column 6: IS is no operator here; write NOT has(year)
"release year" is not null -> column 16: is is no operator here; write has("release year")
available IS NOT true -> column 11: IS is no operator here; write available != true
year IS -> column 6: IS is no operator here; write has(year), NOT has(year) or year = value
year = null -> column 8: null is no value; write NOT has(year), or "null" for that text
year != NULL -> column 9: NULL is no value; write has(year), or "NULL" for that text
year IN [1990, null] -> column 16: expected a value in the list, found null; null is no value, write NOT has(field)
)"));
}

TEST(ParserTest, SaysHowHasIsWritten) {
  ExpectMessages(Table(R"(
has year -> column 1: has takes its field in parentheses; write has(year)
has() -> column 5: expected a field in has(...), found )
has(year -> column 4: this ( is never closed
a = 1 AND has( -> column 14: this ( is never closed
has(year, title) -> column 9: expected ) after has(year, found ,
has(release year) -> column 13: expected ) after has(release, found year; a field of several words needs quotes
has(year) = true -> column 11: expected AND, OR or the end, found =; a comparison has its field on the left
exists(year) -> column 1: there is no exists(...); there are has(field) and folded(field) = "text"
"has"(year) -> column 1: there is no "has"(...); there are has(field) and folded(field) = "text"
year = * -> column 8: expected a value after =, found *; for any value write has(year)
title:*toy -> column 7: : finds parts of a text without *; write title:toy
folded(title) -> column 14: expected =, != or IN after folded(title), found the end
title:toy* -> column 10: expected AND, OR or the end, found *; : finds parts of a text without *
* -> column 1: expected a condition, found *; leave the filter out to ask for every item
year:* 5 -> column 8: expected AND, OR or the end, found 5
)"));
}

TEST(ParserTest, SaysHowAListIsWritten) {
  ExpectMessages(Table(R"(
id IN ("a", b) -> column 7: expected [ after IN, found (; write id IN ["a", b]
id NOT IN (a, b) -> column 11: expected [ after IN, found (; write id NOT IN [a, b]
id IN null -> column 7: expected [ after IN, found null
id IN (a -> column 7: expected [ after IN, found (; write id IN [...]
id IN a -> column 7: expected [ after IN, found a; write id IN [a]
"Drama" IN genres -> column 12: expected [ after IN, found genres; to ask what a list holds write genres:"Drama"
5 IN ratings -> column 1: the field comes before the value; to ask what a list holds write ratings:5
id IN -> column 6: expected [ after IN, found the end
id IN [] -> column 7: this list is empty; expected a value in it
id IN [a, b -> column 7: this [ is never closed
id IN [a, -> column 7: this [ is never closed
id IN [ -> column 7: this [ is never closed
id IN [a,] -> column 9: this comma ends the list; expected a value after it
id IN [,a] -> column 8: expected a value in the list, found ,
id IN [a b] -> column 10: expected , or ] for the [ at column 7, found b; a value of several words needs quotes
id IN ["a" "b"] -> column 12: expected , or ] for the [ at column 7, found "b"
id IN ["a" AND year = 3 -> column 12: expected , or ] for the [ at column 7, found AND
id IN [not] -> column 8: expected a value in the list, found not; a value of that name needs quotes: "not"
id IN [[a]] -> column 8: expected a value in the list, found [
at IN [2024-01-31T12:00:00Z] -> column 8: a value with a : in it needs quotes: "2024-01-31T12:00:00Z"
genres = [a, b] -> column 10: expected a value after =, found [; for any of several values write genres IN [...]
[a] -> column 1: expected a condition such as year >= 1990, found [; a list goes only after IN
)"));
}

TEST(ParserTest, SaysWhatStandsOnTheWrongSide) {
  ExpectMessages(Table(R"(
1990 < year -> column 1: the field comes before the value; write year > 1990
-5 >= low -> column 1: the field comes before the value; write low <= -5
7.5 = rating -> column 1: the field comes before the value; write rating = 7.5
1990 <= year < 2000 -> column 1: the field comes before the value; write year >= 1990 AND year < 2000
1990 < 5 -> column 1: expected a field, found the number 1990; a field with such a name needs quotes: "1990"
1990 IN [1] -> column 1: expected a field, found the number 1990; a field with such a name needs quotes: "1990"
1990 -> column 1: expected a field and a comparison such as year = 1990, found the number 1990
year > 1990 < 2000 -> column 13: comparisons do not chain; write year > 1990 AND year < 2000
"2024-01-31" <= released < "2024-02-29" -> column 26: comparisons do not chain; write released >= "2024-01-31" AND released < "2024-02-29"
2024-01-31 > at = x -> column 17: comparisons do not chain; write at < 2024-01-31 AND at = x
a = b = -> column 7: expected AND or OR between two comparisons, found =
at >= 2024-01-31T12:00:00Z -> column 7: a value with a : in it needs quotes: "2024-01-31T12:00:00Z"
)"));
}

TEST(ParserTest, SaysWhatStandsAlone) {
  ExpectMessages(Table(R"(
available -> column 1: available is no condition by itself; write available = true or has(available)
NOT available -> column 5: available is no condition by itself; write available = true or has(available)
("in stock") -> column 2: "in stock" is no condition by itself; write "in stock" = true or has("in stock")
available AND year = 1990 -> column 1: available is no condition by itself; write available = true or has(available)
true -> column 1: true is no condition by itself; write field = true
has -> column 1: has is no condition by itself; write has = true or has(has)
year = 1990 OR 1991 -> column 16: 1991 is compared with nothing; write year = 1991
genres:"War" OR "Drama" -> column 17: "Drama" is compared with nothing; write genres:"Drama"
year >= 1990 AND <= 2000 -> column 18: expected a field before <=, found <=; write year <= 2000
= 5 -> column 1: expected a field before =, found =
IN [a] -> column 1: expected a field before IN, found IN
)"));
}

TEST(ParserTest, SaysWhatIsMissingBetweenConditions) {
  ExpectMessages(Table(R"(
a = 1 b = 2 -> column 7: expected AND, OR or the end, found b; write AND or OR before it
a = 1 b NOT IN [2] -> column 7: expected AND, OR or the end, found b; write AND or OR before it
a = 1, b = 2 -> column 6: expected AND, OR or the end, found ,; write AND or OR between two conditions
has(a), b -> column 7: expected AND, OR or the end, found ,
g:"War","Drama" -> column 8: expected AND, OR or the end, found ,; for any of several values write g IN [...]
rating = 7,5 -> column 11: expected AND, OR or the end, found ,; a decimal mark is written .
t = Schindler's 'list' -> column 14: expected AND, OR or the end, found 's '; text with a ' in it needs quotes
at > 2024-01-31 12:00:00 AND a = 1 -> column 17: expected AND, OR or the end, found 12; a value of several words needs quotes: "2024-01-31 12:00:00"
a = 1 NOT b = 2 -> column 7: expected AND, OR or the end, found NOT; write AND or OR before it
a = 1 has(b) -> column 7: expected AND, OR or the end, found has; write AND or OR before it
has(a) (b = 2) -> column 8: expected AND, OR or the end, found (; write AND or OR before it
title = Alien (1979) -> column 15: expected AND, OR or the end, found (; write AND or OR before it, or quotes around a value with parentheses
(a = 1 b = 2) -> column 8: expected AND, OR or ) for the ( at column 1, found b; write AND or OR before it
title = Toy Story -> column 13: expected AND, OR or the end, found Story; a value of several words needs quotes: "Toy Story"
title = The Toy Story year = 1995 -> column 13: expected AND, OR or the end, found Toy; a value of several words needs quotes: "The Toy Story"
release year = 1990 -> column 9: expected =, !=, <, <=, >, >=, : or IN after release, found year; a field of several words needs quotes: "release year"
title "Solaris" -> column 7: expected =, !=, <, <=, >, >=, : or IN after title, found "Solaris"
year = 1990 here -> column 13: expected AND, OR or the end, found here
a = 1 ] -> column 7: expected AND, OR or the end, found ]
)"));
  ExpectMessages({
      {"title = 'Schindler's list",
       "column 20: expected AND, OR or the end, found s; a ' inside the text is written \\'"},
  });
}

TEST(ParserTest, SaysWhatIsMissingAroundAndOrAndNot) {
  ExpectMessages(Table(R"(
a = 1 AND -> column 10: expected a condition after AND, found the end
NOT -> column 4: expected a condition after NOT, found the end
(a = 1 AND) -> column 11: expected a condition after AND, found )
a = 1 AND OR b = 2 -> column 11: expected a condition after AND, found OR
AND a = 1 -> column 1: expected a condition such as year >= 1990, found AND; AND and OR join two conditions
and = 1 -> column 1: expected a condition such as year >= 1990, found and; AND and OR join two conditions
a = AND -> column 5: expected a value after =, found AND; a value of that name needs quotes: "AND"
a = -> column 4: expected a value after =, found the end
a : ) -> column 5: expected a value after :, found )
a > > 3 -> column 5: expected a value after >, found >
a = (1) -> column 5: expected a value after =, found (; for any of several values write a IN [...]
)"));
}

TEST(ParserTest, PointsAtParenthesesAndQuotesThatAreNotPaired) {
  ExpectMessages(Table(R"(
(a = 1 -> column 1: this ( is never closed
a = 1 AND (b = 2 OR (c = 3) -> column 11: this ( is never closed
( -> column 1: this ( is never closed
a = 1) -> column 6: this ) closes nothing; no ( is open before it
() -> column 1: these parentheses are empty; expected a condition in them
a = "x -> column 5: this " is never closed
a = 'x\ -> column 5: this ' is never closed
a = "x\" -> column 5: this " is never closed
title = Schindler's -> column 18: this ' is never closed; text with a ' in it goes in double quotes
a = “x” -> column 5: “ is no quote here; write a straight one, " or '
a = Schindler’s -> column 14: ’ is no quote here; write a straight one, " or '
a = `x` -> column 5: ` is no quote here; write a straight one, " or '
)"));
}

TEST(ParserTest, RefusesCharactersThatMeanNothing) {
  ExpectMessages(Table(R"(
a = 1; b = 2 -> column 6: ; has no meaning here; text that holds it needs quotes
a = 50% -> column 7: % has no meaning here; text that holds it needs quotes
a = b/c -> column 6: / has no meaning here; text that holds it needs quotes
)"));
  ExpectMessages({
      {"a\u00a0= 1",
       "column 2: an unusual space or invisible character, U+00A0; write a plain space"},
      {"\ufeffa = 1",
       "column 1: an unusual space or invisible character, U+FEFF; write a plain space"},
      {"a = \x01", "column 5: the control character U+0001 is only written as \\u0001, in quotes"},
      {"a = \"é\n\"", "column 7: the control character U+000A is only written as \\n, in quotes"},
      {"a = '\u0085'",
       "column 6: the control character U+0085 is only written as \\u0085, in quotes"},
      {"a = \xff", "column 5: byte 0xff begins no valid UTF-8 character"},
      {"a = b:\xff", "column 5: a value with a : in it needs quotes: \"b:...\""},
      {"é = \"é\xc3\"", "column 7: byte 0xc3 begins no valid UTF-8 character"},
      {"a = é\xed\xa0\x80", "column 6: byte 0xed begins no valid UTF-8 character"},
  });
}

TEST(ParserTest, RefusesEscapesItDoesNotKnow) {
  ExpectMessages(Table(R"(
a = "\ud83c" -> column 6: \ud83c is half of a surrogate pair; the other half is missing
a = "\udfac\ud83c" -> column 6: \udfac is half of a surrogate pair; the other half is missing
a = "\ud83c\u0041" -> column 6: \ud83c is half of a surrogate pair; the other half is missing
a = "éé\u12g4" -> column 8: \u needs four hexadecimal digits after it
a = "\u12 -> column 6: \u needs four hexadecimal digits after it
a = "é\d" -> column 7: \d is no escape; those are \" \' \\ \n \t and \uXXXX, and a backslash in the text is written \\
)"));
  EXPECT_THAT(ReadError("a = \"\\\n\""), StartsWith("column 6: \\ is no escape; "));
}

TEST(ParserTest, ReportsTheFirstOfSeveralErrors) {
  ExpectMessages(Table(R"(
title LIKE "x" AND b == 1 -> column 7: LIKE is no operator here; write title:"x"
a b = 'x -> column 3: expected =, !=, <, <=, >, >=, : or IN after a, found b; a field of several words needs quotes: "a b"
available && year == 1 -> column 11: && is no operator here; write AND
id IN [a == b -> column 10: == is no operator here; write =
has(%) -> column 5: % has no meaning here; text that holds it needs quotes
)"));
}

TEST(ParserTest, CountsColumnsInCharacters) {
  ExpectMessages(Table(R"(
название = "Солярис 🎬" AND year == 1 -> column 33: == is no operator here; write =
é = 1 ) -> column 7: this ) closes nothing; no ( is open before it
)"));
  ExpectMessages({
      {"\n\né =", "column 6: expected a value after =, found the end"},
  });
}

TEST(ParserTest, CutsWhatIsLongInMessages) {
  const std::string word(500, 'w');
  const std::string cut = word.substr(0, 40) + "...";
  EXPECT_EQ(ReadError(word), "column 1: " + cut + " is no condition by itself; write " + cut +
                                 " = true or has(" + cut + ")");
}

TEST(ParserTest, RefusesAnEmptyFilter) {
  constexpr std::string_view kMessage =
      "column 1: the filter is empty; leave it out to ask for every item";
  ExpectMessages({{"", kMessage}, {"   ", kMessage}, {"\t\r\n", kMessage}});
}

TEST(ParserTest, RefusesMoreBytesThanTheLimit) {
  const std::string most = "a = " + std::string(kFilterBytesMax - 4, 'x');
  EXPECT_TRUE(Parse(most).ok());
  EXPECT_EQ(ReadError(most + 'x'), "column 1: the filter has 8,193 bytes; at most 8,192 are taken");
  EXPECT_THAT(ReadError(std::string(kFilterBytesMax + 1, '\xff')),
              StartsWith("column 1: the filter"));
}

TEST(ParserTest, RefusesDeeperNestingThanTheLimit) {
  static_assert(kFilterDepthMax == 64);
  const std::string why = ": parentheses and NOTs are nested more than 64 deep";
  const auto parentheses = [](std::size_t depth) {
    return Repeated("(", depth) + "a = 1" + Repeated(")", depth);
  };
  EXPECT_EQ(Parsed(parentheses(64)), Leaf("a"));
  EXPECT_EQ(ReadError(parentheses(65)), "column 65" + why);
  EXPECT_EQ(ToText(Parsed(Repeated("not ", 64) + "a=1")), Repeated("NOT ", 64) + "a = 1");
  EXPECT_EQ(ReadError(Repeated("NOT ", 65) + "a = 1"), "column 257" + why);
  EXPECT_TRUE(Parse(Repeated("NOT(", 32) + "a=1" + Repeated(")", 32)).ok());
  EXPECT_EQ(ReadError(Repeated("NOT(", 32) + "NOT a=1" + Repeated(")", 32)), "column 129" + why);
  EXPECT_EQ(ReadError(std::string(kFilterBytesMax, '(')), "column 65" + why);
}

TEST(ParserTest, CountsNestingAnewAfterEachParenthesis) {
  std::string filter = "a = 1";
  for (int i = 0; i < 100; ++i) filter += " AND NOT (b = 1)";
  EXPECT_EQ(Parsed(filter).children.size(), 101U);
  const std::string nested = Repeated("b = 1 AND (c = 1 OR (", 32) + "a = 1" + Repeated("))", 32);
  const Expression deep = Parsed(nested);
  EXPECT_EQ(Parsed(ToText(deep)), deep);
}

TEST(ParserTest, TakesAsManyConditionsAsFit) {
  std::string filter = "a:1";
  while (filter.size() + 8 <= kFilterBytesMax) filter += " AND a:1";
  EXPECT_EQ(Parsed(filter).children.size(), 1024U);
  std::string list = "a IN [1";
  while (list.size() + 3 <= kFilterBytesMax) list += ",1";
  EXPECT_EQ(Parsed(list + ']').literals.size(), 4093U);
}

TEST(ToTextTest, WritesEveryFilterInOneWay) {
  ExpectTexts(Table(R"(
genres:'Sci-Fi' and year>=1990 and not(title='Solaris' or rating<5) -> genres:"Sci-Fi" AND year >= 1990 AND NOT (title = "Solaris" OR rating < 5)
id in['a',b] -> id IN ["a", b]
not id in [a] -> id NOT IN [a]
not id not in [a] -> NOT id NOT IN [a]
NOT (id IN [a]) -> id NOT IN [a]
Has ( 'year' ) -> has(year)
Folded( title )='a' -> folded(title) = "a"
year : * -> has(year)
((a = 1)) -> a = 1
(a = 1) OR ((b = 1) OR c = 1) -> a = 1 OR b = 1 OR c = 1
((a = 1 AND b = 1) OR (c = 1)) -> (a = 1 AND b = 1) OR c = 1
not (not (a = 1)) -> NOT NOT a = 1
not (a = 1) -> NOT a = 1
year = '1990' AND year = 1990 -> year = "1990" AND year = 1990
a IN ['x', x, 'AND', ''] -> a IN ["x", x, "AND", ""]
a != 1 AND a < 1 AND a <= 1 AND a > 1 AND a >= 1 AND a : 1 -> a != 1 AND a < 1 AND a <= 1 AND a > 1 AND a >= 1 AND a:1
)"));
}

TEST(ToTextTest, QuotesFieldsOnlyWhereTheyNeedIt) {
  ExpectTexts(Table(R"(
'title' = 1 -> title = 1
'has' = 1 -> has = 1
'название' = 1 -> название = 1
'release year' = 1 -> "release year" = 1
'And' = 1 -> "And" = 1
'in' IN [1] -> "in" IN [1]
'' = 1 -> "" = 1
'1990' = 1 -> "1990" = 1
'-x':1 -> "-x":1
has(1990) -> has("1990")
)"));
  ExpectTexts({{"has('a\u00a0b')", "has(\"a\u00a0b\")"}});
}

TEST(ToTextTest, EscapesNoMoreThanItMust) {
  ExpectTexts(Table(R"(
a = 'it\'s \"so\" \\ \n\t\u0001\u0000\u007f\u0085\u00e9' -> a = "it's \"so\" \\ \n\t\u0001\u0000\u007f\u0085é"
a:'\ud83c\udfac“”' -> a:"🎬“”"
)"));
}

// Expressions of every shape that the language can write.
class RandomExpressions {
 public:
  explicit RandomExpressions(std::uint64_t seed) : random_(seed) {}

  Expression Next(std::size_t depth) {
    switch (depth == 0 ? 3 : random_.Below(6)) {
      case 0:
        return Not(Next(depth - 1));
      case 1:
      case 2:
        return Children(depth);
      default:
        return Leaf();
    }
  }

 private:
  Expression Children(std::size_t depth) {
    const auto kind = random_.OneIn(2) ? Expression::Kind::kAnd : Expression::Kind::kOr;
    std::vector<Expression> children;
    const std::size_t count = random_.Between(2, 4);
    while (children.size() < count) {
      Expression child = Next(depth - 1);
      if (child.kind != kind) children.push_back(std::move(child));
    }
    return Joined(kind, std::move(children));
  }

  Expression Leaf() {
    switch (random_.Below(4)) {
      case 0:
        return Has(Text());
      case 1: {
        std::vector<Literal> literals;
        for (std::size_t i = random_.Between(1, 3); i > 0; --i) literals.push_back(Value());
        Expression in = In(Text(), std::move(literals));
        in.is_folded = random_.OneIn(2);
        return in;
      }
      default:
        return Compare(Text(), Operators()[random_.Below(7)].symbol, Value());
    }
  }

  Literal Value() {
    static const std::vector<std::string> words = {"1990", "-5", "7.5e0", "true", "has",
                                                   "x",    "+",  "é.a",   "日本", "like"};
    return random_.OneIn(2) ? Bare(words[random_.Below(words.size())]) : Quoted(Text());
  }

  std::string Text() {
    static const std::vector<std::string> pieces = {
        "a",      "AND", "or", "Not", "in", "has",    "null", "is",     "1",
        "-",      ".",   "e",  " ",   "\"", "'",      "\\",   "\n",     "\t",
        "\r",     "*",   "(",  "]",   ",",  ":",      "é",    "\u00a0", "\u0085",
        "\u2028", "“",   "≤",  "🎬",   "日", "\u200d", "%",    "\x01",   "\x7f"};
    std::string text;
    while (!random_.OneIn(3)) text += pieces[random_.Below(pieces.size())];
    return text;
  }

  SeededRandom random_;
};

TEST(ToTextTest, ParsesBackToTheSameExpression) {
  constexpr std::uint64_t kSeed = 20240531;
  RandomExpressions expressions(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const Expression expression = expressions.Next(4);
    const std::string text = ToText(expression);
    if (text.size() > kFilterBytesMax) continue;
    const absl::StatusOr<Expression> again = Parse(text);
    ASSERT_TRUE(again.ok()) << "seed " << kSeed << ": " << text << "\n" << again.status();
    ASSERT_EQ(*again, expression) << "seed " << kSeed << ": " << text;
    ASSERT_EQ(ToText(*again), text);
  }
}

// Pieces that mean something, in any order: an error at a column, or what has a text.
TEST(ParserTest, AnswersPiecesInAnyOrder) {
  constexpr std::uint64_t kSeed = 7;
  static const std::vector<std::string> pieces = {
      "a",  "year ", "1990", " AND ", " or ", " NOT ",  " IN ",      "has",  "(",      ")",
      "[",  "]",     ",",    "*",     "=",    ":",      "<=",        "!=",   "\"x\"",  "'",
      "==", " ",     "é",    "\\",    "null", " LIKE ", " BETWEEN ", " IS ", "\u00a0", "\xff"};
  SeededRandom random(kSeed);
  std::size_t parsed_count = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string filter;
    for (std::size_t count = random.Between(1, 9); count > 0; --count) {
      filter += pieces[random.Below(pieces.size())];
    }
    const absl::StatusOr<Expression> expression = Parse(filter);
    if (!expression.ok()) {
      ASSERT_EQ(ReadError(filter).rfind("column ", 0), 0U) << filter;
      continue;
    }
    ++parsed_count;
    ASSERT_EQ(Parsed(ToText(*expression)), *expression) << "seed " << kSeed << ": " << filter;
  }
  EXPECT_GT(parsed_count, 100U);
}

}  // namespace
}  // namespace simile::filter

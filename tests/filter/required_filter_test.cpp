#include "filter/required_filter.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filter/operators.h"
#include "filter/parser.h"

namespace simile::filter {
namespace {

std::string RefusalAsRequired(std::string_view text) {
  const absl::StatusOr<Expression> parsed = Parse(text);
  EXPECT_TRUE(parsed.ok()) << text << parsed.status();
  return std::string(CheckRequiredFilter(parsed.value()).message());
}

TEST(RequiredFilterTest, TakesWhatComparesWholeValues) {
  for (const char* const text :
       {"country = \"DE\"", "country != \"DE\"", "country IN [\"DE\", \"AT\"]",
        "country NOT IN [\"DE\"]", "year >= 1990 AND year < 2000 AND year <= 1999 AND year > 1",
        "has(country)", "country:*", "NOT (available = true OR has(hidden))"}) {
    EXPECT_EQ(RefusalAsRequired(text), "") << text;
  }
}

TEST(RequiredFilterTest, RefusesPartsOfTextsWithWhatWouldBeRight) {
  constexpr char kRefusal[] =
      "column 1: country:\"DE\" also passes texts that only contain the value, and a required "
      "filter must compare whole values; write country = \"DE\", which asks a list for an element";
  EXPECT_EQ(RefusalAsRequired("country:\"DE\""), kRefusal);
  EXPECT_EQ(RefusalAsRequired("country : \"DE\""), kRefusal);
  EXPECT_THAT(RefusalAsRequired("year = 1990 AND NOT (has(a) OR \"the country\":DE)"),
              ::testing::StartsWith("column 32: \"the country\":DE also passes"));
}

// So that a new comparison is refused until it is known to compare whole values.
TEST(RequiredFilterTest, TakesAComparisonOnlyWhereItTestsForEquality) {
  for (const Operator& each : Operators()) {
    if (each.kind != Token::Kind::kComparison) continue;
    const bool is_whole = each.keyword == KeywordTest::kNone || each.keyword == KeywordTest::kEqual;
    const std::string refusal = RefusalAsRequired(ComparisonText("year", each, "1990"));
    EXPECT_EQ(refusal.empty(), is_whole) << each.symbol;
  }
}

}  // namespace
}  // namespace simile::filter

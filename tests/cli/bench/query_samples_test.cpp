#include "cli/bench/query_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::cli::bench {
namespace {

v1::FieldDescription Field(const std::string& name, v1::FieldType type) {
  v1::FieldDescription described;
  described.mutable_field()->set_name(name);
  described.mutable_field()->set_type(type);
  return described;
}

void AddValue(v1::FieldDescription& described, const std::string& text, std::uint64_t rows) {
  v1::ValueCount& value = *described.add_values();
  value.mutable_value()->set_string_value(text);
  value.set_rows(rows);
}

PayloadMap Payload(const std::string& field, const v1::PayloadValue& value) {
  PayloadMap payload;
  payload[field] = value;
  return payload;
}

TEST(SampledFilterTest, MakesFiltersOfCommonKeywords) {
  v1::FieldDescription genres = Field("genres", v1::FIELD_TYPE_KEYWORD_LIST);
  AddValue(genres, "Drama", 900);
  AddValue(genres, "a \"quoted\" one", 20);
  AddValue(genres, "two\nlines", 20);
  AddValue(genres, "Once", 1);
  const auto filters = SampleFilters(genres);
  ASSERT_EQ(filters.size(), 1U);
  EXPECT_EQ(filters[0].text, "genres = \"Drama\"");
  v1::PayloadValue list;
  for (const char* const other : {"Comedy", "DRAMA", "Drama ", "Dr\u00e1ma"}) {
    list.mutable_list_value()->add_values()->set_string_value(other);
  }
  EXPECT_FALSE(Passes(filters[0], Payload("genres", list)));
  list.mutable_list_value()->add_values()->set_string_value("Drama");
  EXPECT_TRUE(Passes(filters[0], Payload("genres", list)));
  EXPECT_FALSE(Passes(filters[0], {}));
}

TEST(SampledFilterTest, SplitsTheTextsOfListsOnly) {
  v1::PayloadValue text;
  text.set_string_value("Action | Drama");
  v1::FieldDescription genres = Field("genres", v1::FIELD_TYPE_KEYWORD_LIST);
  AddValue(genres, "Drama", 900);
  EXPECT_TRUE(Passes(SampleFilters(genres)[0], Payload("genres", text)));
  v1::FieldDescription whole = Field("genres", v1::FIELD_TYPE_KEYWORD_LIST);
  AddValue(whole, "Action | Drama", 900);
  EXPECT_TRUE(Passes(SampleFilters(whole)[0], Payload("genres", text)));
  v1::FieldDescription title = Field("title", v1::FIELD_TYPE_KEYWORD);
  AddValue(title, "Drama", 2);
  EXPECT_FALSE(Passes(SampleFilters(title)[0], Payload("title", text)));
}

TEST(SampledFilterTest, AnEmptyTextIsAKeyword) {
  v1::FieldDescription title = Field("title", v1::FIELD_TYPE_KEYWORD);
  AddValue(title, "", 2);
  v1::PayloadValue text;
  text.set_string_value("");
  EXPECT_TRUE(Passes(SampleFilters(title)[0], Payload("title", text)));
}

TEST(SampledFilterTest, MakesFiltersOfIntegers) {
  v1::FieldDescription year = Field("year", v1::FIELD_TYPE_INTEGER);
  year.mutable_least()->set_int_value(1900);
  year.mutable_greatest()->set_int_value(2000);
  const auto filters = SampleFilters(year);
  ASSERT_EQ(filters.size(), 3U);
  EXPECT_EQ(filters[1].text, "year >= 1950");
  v1::PayloadValue value;
  value.set_int_value(1949);
  EXPECT_FALSE(Passes(filters[1], Payload("year", value)));
  value.set_int_value(1950);
  EXPECT_TRUE(Passes(filters[1], Payload("year", value)));
}

TEST(SampledFilterTest, MakesNoneWhereNamesNeedQuotes) {
  v1::FieldDescription odd = Field("a b", v1::FIELD_TYPE_KEYWORD);
  AddValue(odd, "x", 5);
  EXPECT_TRUE(SampleFilters(odd).empty());
  EXPECT_TRUE(SampleFilters(Field("rating", v1::FIELD_TYPE_NUMBER)).empty());
}

}  // namespace
}  // namespace simile::cli::bench

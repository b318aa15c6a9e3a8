#include "cli/fields_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace simile::cli {
namespace {

v1::DescribeFieldsResponse FilmFields() {
  v1::DescribeFieldsResponse described;
  described.set_rows(5'000);
  described.set_snapshot_id("3f9a12c4d5e6f708192a3b4c5d6e7f80");
  described.set_snapshot_version(2);
  v1::FieldDescription& genres = *described.add_fields();
  genres.mutable_field()->set_name("genres");
  genres.mutable_field()->set_type(v1::FIELD_TYPE_KEYWORD_LIST);
  genres.mutable_field()->set_rows(4'984);
  genres.set_distinct_values(42);
  genres.set_bytes(40'960);
  v1::ValueCount& drama = *genres.add_values();
  drama.mutable_value()->set_string_value("Drama");
  drama.set_rows(1'850);
  v1::ValueCount& comedy = *genres.add_values();
  comedy.mutable_value()->set_string_value("Comedy");
  comedy.set_rows(1'409);
  v1::FieldDescription& year = *described.add_fields();
  year.mutable_field()->set_name("year");
  year.mutable_field()->set_type(v1::FIELD_TYPE_INTEGER);
  year.mutable_field()->set_rows(5'000);
  year.set_distinct_values(121);
  year.mutable_least()->set_int_value(1902);
  year.mutable_greatest()->set_int_value(2023);
  year.set_bytes(61'440);
  return described;
}

TEST(FieldsCommandTest, PrintsOneLinePerField) {
  EXPECT_EQ(
      FieldsTable(FilmFields(), Terminal{}),
      "field   type               rows  different  most common, or range            memory\n"
      "genres  list of keywords  4,984         42  Drama (1,850), Comedy (1,409)  40.0 KiB\n"
      "year    integer           5,000        121  1902 to 2023                   60.0 KiB\n");
}

TEST(FieldsCommandTest, LeavesOutTheMemoryOnANarrowTerminal) {
  Terminal terminal;
  terminal.width = 80;
  EXPECT_THAT(FieldsTable(FilmFields(), terminal), testing::HasSubstr("memory"));
  terminal.width = 60;
  EXPECT_EQ(FieldsTable(FilmFields(), terminal),
            "field   type               rows  different  most common, or…\n"
            "genres  list of keywords  4,984         42  Drama (1,850),…\n"
            "year    integer           5,000        121  1902 to 2023\n");
}

TEST(FieldsCommandTest, ListsTheValuesOfOneField) {
  EXPECT_EQ(FieldValuesTable(FilmFields().fields(0), Terminal{}),
            "genres: list of keywords, in 4,984 rows, 42 different values\n"
            "  value    rows\n"
            "  Drama   1,850\n"
            "  Comedy  1,409\n"
            "  and 40 more; --values shows more\n");
  EXPECT_EQ(FieldValuesTable(FilmFields().fields(1), Terminal{}),
            "year: integer, in 5,000 rows, 1902 to 2023\n");
}

TEST(FieldsCommandTest, CutsLongValuesAmongOthers) {
  v1::DescribeFieldsResponse described = FilmFields();
  described.mutable_fields(0)->mutable_values(0)->mutable_value()->set_string_value(
      std::string(50, 'x'));
  EXPECT_THAT(FieldsTable(described, Terminal{}),
              testing::HasSubstr("  " + std::string(39, 'x') + "… (1,850), Comedy (1,409)  "));
}

TEST(FieldsCommandTest, PrintsTheSameAsJson) {
  const auto fields = nlohmann::json::parse(FieldsJson("films", FilmFields()));
  EXPECT_EQ(fields["collection"], "films");
  EXPECT_EQ(fields["rows"], 5'000);
  EXPECT_EQ(fields["fields"][0]["values"][1]["value"], "Comedy");
  EXPECT_EQ(fields["fields"][0]["values"][1]["rows"], 1'409);
  EXPECT_EQ(fields["fields"][1]["type"], "integer");
  EXPECT_EQ(fields["snapshot_id"], "3f9a12c4d5e6f708192a3b4c5d6e7f80");
  EXPECT_EQ(fields["fields"][0]["least"], nullptr);
  EXPECT_EQ(fields["fields"][0]["type"], "list of keywords");
  EXPECT_EQ(fields["fields"][1]["least"], 1902);
  EXPECT_EQ(fields["fields"][1]["greatest"], 2023);
  EXPECT_EQ(fields["fields"][1]["distinct_values"], 121);
}

TEST(FieldsCommandTest, PrintsNumbersAsNumbersAndTimesAsText) {
  v1::DescribeFieldsResponse described = FilmFields();
  v1::FieldDescription& year = *described.mutable_fields(1);
  const auto least = [&] {
    return nlohmann::json::parse(FieldsJson("films", described))["fields"][1]["least"].dump();
  };
  year.mutable_least()->set_int_value(9'007'199'254'740'993);
  EXPECT_EQ(least(), "9007199254740993");
  year.mutable_least()->set_double_value(-0.5);
  EXPECT_EQ(least(), "-0.5");
  year.mutable_least()->set_string_value("2024-05-31T12:00:00Z");
  EXPECT_EQ(least(), R"("2024-05-31T12:00:00Z")");
}

TEST(FieldsCommandTest, OffersAFilterThatManyRowsPass) {
  v1::DescribeFieldsResponse described = FilmFields();
  EXPECT_EQ(FilterExample(described), "genres:\"Drama\"");
  described.mutable_fields(0)->mutable_field()->set_name("main genre");
  EXPECT_EQ(FilterExample(described), "\"main genre\":\"Drama\"");
  described.mutable_fields(0)->mutable_values(0)->mutable_value()->set_string_value("Rock'n'Roll");
  EXPECT_EQ(FilterExample(described), "\"main genre\":\"Comedy\"");
  described.mutable_fields(0)->mutable_values(1)->mutable_value()->set_string_value(
      std::string(41, 'x'));
  EXPECT_EQ(FilterExample(described), "");
}

}  // namespace
}  // namespace simile::cli

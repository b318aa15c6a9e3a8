#include "cli/item_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace simile::cli {
namespace {

v1::Item Film(const std::string& id, const std::string& title, std::int64_t year) {
  v1::Item item;
  item.set_id(id);
  (*item.mutable_payload())["title"].set_string_value(title);
  (*item.mutable_payload())["year"].set_int_value(year);
  return item;
}

v1::LookupResponse Found() {
  v1::LookupResponse found;
  *found.add_matches()->mutable_item() = Film("heat-1995", "Heat", 1995);
  *found.add_matches()->mutable_item() = Film("red-heat-1988", "Red Heat", 1988);
  return found;
}

TEST(ItemTextTest, ShowsAllThatAnItemHas) {
  v1::Item item = Film("heat-1995", "Heat", 1995);
  EXPECT_EQ(ItemDetails(item, Terminal{}), "heat-1995\n  title  Heat\n  year   1995\n");
  item.set_row(1'234);
  for (const float number : {0.25F, -1.0F, 0.0F, 1.0F, 2.0F}) {
    item.mutable_vector()->add_values(number);
  }
  EXPECT_EQ(ItemDetails(item, Terminal{}),
            "heat-1995\n"
            "  (row)     1,234\n"
            "  title     Heat\n"
            "  year      1995\n"
            "  (vector)  0.2500, -1.0000, 0.0000, 1.0000, ... (5 numbers; --json prints all)\n");
}

TEST(ItemTextTest, LeavesOutTheFieldThatRepeatsTheId) {
  v1::Item item = Film("heat-1995", "Heat", 1995);
  (*item.mutable_payload())["media_id"].set_string_value("heat-1995");
  EXPECT_EQ(ItemDetails(item, Terminal{}), "heat-1995\n  title  Heat\n  year   1995\n");
  item.set_id("1995");  // the year equals it by chance
  EXPECT_EQ(ItemDetails(item, Terminal{}),
            "1995\n  media_id  heat-1995\n  title     Heat\n  year      1995\n");
  (*item.mutable_payload())["id"].set_int_value(1995);
  EXPECT_EQ(ItemDetails(item, Terminal{}),
            "1995\n  media_id  heat-1995\n  title     Heat\n  year      1995\n");
}

TEST(ItemTextTest, CountsMatchesInASentence) {
  EXPECT_EQ(MatchCountText(1'000, "mine"), "1,000 items of mine match");
  EXPECT_EQ(MatchCountText(1, "mine"), "1 item of mine matches");
  EXPECT_EQ(MatchCountText(0, "mine"), "no item of mine matches");
}

TEST(ItemTextTest, ListsMatchesByIdTitleAndYear) {
  EXPECT_EQ(MatchTable(Found(), {}, Terminal{}),
            "  heat-1995      Heat      1995\n"
            "  red-heat-1988  Red Heat  1988\n");
}

TEST(ItemTextTest, NamesTheColumnsThatWereAskedFor) {
  v1::LookupResponse found = Found();
  for (v1::LookupMatch& match : *found.mutable_matches()) match.mutable_item()->set_row(7);
  EXPECT_EQ(MatchTable(found, {"year"}, Terminal{}),
            "  id             row  year\n"
            "  heat-1995        7  1995\n"
            "  red-heat-1988    7  1988\n");
  EXPECT_EQ(MatchTable(v1::LookupResponse(), {"year"}, Terminal{}), "");
}

TEST(ItemTextTest, ListsMatchesByTheirNamesWhereThereAreNoTitles) {
  v1::LookupResponse found;
  v1::Item& item = *found.add_matches()->mutable_item();
  item.set_id("7");
  for (const char* field : {"brand", "colour", "name", "price"}) {
    (*item.mutable_payload())[field].set_string_value(field);
  }
  EXPECT_EQ(MatchTable(found, {}, Terminal{}),
            "  id  name  brand  colour\n"
            "  7   name  brand  colour\n");
}

TEST(ItemTextTest, CutsLongListsAndChoosesNoLongColumnsOfItsOwn) {
  v1::LookupResponse found;
  v1::Item& item = *found.add_matches()->mutable_item();
  item.set_id("7");
  auto& payload = *item.mutable_payload();
  payload["abstract"].set_string_value(std::string(81, 'x'));
  payload["brand"].set_string_value("brand");
  for (int i = 0; i < 30; ++i) {
    payload["tags"].mutable_list_value()->add_values()->set_string_value("a long tag");
  }
  EXPECT_EQ(
      MatchTable(found, {}, Terminal{}),
      "  id  tags                                                                     brand\n"
      "  7   a long tag, a long tag, a long tag, a long tag, a long tag, and 25 more  brand\n");
  EXPECT_THAT(MatchTable(found, {"abstract"}, Terminal{}),
              testing::HasSubstr("  7   " + std::string(81, 'x') + "\n"));
  payload["tags"].mutable_list_value()->mutable_values()->DeleteSubrange(1, 29);
  EXPECT_THAT(MatchTable(found, {"tags"}, Terminal{}), testing::EndsWith("  7   a long tag\n"));
}

TEST(ItemTextTest, JsonLeavesOutWhatWasNotAskedFor) {
  v1::Item item = Film("heat-1995", "Heat", 1995);
  EXPECT_EQ(ItemJson(item).dump(), R"({"id":"heat-1995","payload":{"title":"Heat","year":1995}})");
  item.set_row(0);
  item.mutable_vector()->add_values(0.1F);
  EXPECT_EQ(ItemJson(item).dump(),
            R"({"id":"heat-1995","row":0,"payload":{"title":"Heat","year":1995},"vector":[0.1]})");
}

}  // namespace
}  // namespace simile::cli

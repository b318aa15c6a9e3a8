#include "service/payload_selection.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/payload_builder.h"
#include "simile/limits.h"

namespace simile::service {
namespace {

data::PayloadTable Films() {
  data::PayloadTableBuilder builder(1, Limits{});
  const absl::Status added = builder.Add({{"title", PayloadValue{std::string("Toy Story")}},
                                          {"year", PayloadValue{std::int64_t{1995}}},
                                          {"genres", PayloadValue{PayloadList{}}}});
  EXPECT_TRUE(added.ok()) << added;
  return std::move(builder).Build();
}

TEST(SelectPayloadTest, SelectsAllWithoutNames) {
  const data::PayloadTable payload = Films();
  const auto selection = SelectPayload("f", "films", {}, true, payload);
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(ReadSelected(payload, 0, *selection), payload.Read(0));
}

TEST(SelectPayloadTest, SelectsNoneWithoutPayload) {
  const data::PayloadTable payload = Films();
  const auto selection = SelectPayload("f", "films", {}, false, payload);
  ASSERT_TRUE(selection.ok());
  EXPECT_TRUE(ReadSelected(payload, 0, *selection).empty());
}

TEST(SelectPayloadTest, SelectsEachNamedFieldOnce) {
  const data::PayloadTable payload = Films();
  const auto selection = SelectPayload("f", "films", {"year", "title", "year"}, true, payload);
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(ReadSelected(payload, 0, *selection),
            (PayloadObject{{"title", PayloadValue{std::string("Toy Story")}},
                           {"year", PayloadValue{std::int64_t{1995}}}}));
}

TEST(SelectPayloadTest, NamesTheNearestFieldAndAllOthers) {
  const auto selection =
      SelectPayload("options.payload_fields", "films", {"year", "genre"}, true, Films());
  ASSERT_FALSE(selection.ok());
  EXPECT_EQ(selection.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(selection.status().message()),
            "options.payload_fields[1]: films has no field \"genre\". Did you mean \"genres\"? "
            "Fields: genres, title, year.");
}

TEST(SelectPayloadTest, SaysWhenThereIsNoPayloadAtAll) {
  const data::PayloadTable empty;
  const auto all = SelectPayload("f", "vectors", {}, true, empty);
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->none);
  const auto selection = SelectPayload("f", "vectors", {"title"}, true, empty);
  EXPECT_EQ(std::string(selection.status().message()),
            "f[0]: vectors has no field \"title\". It has no payload (no metadata.jsonl).");
}

TEST(SelectPayloadTest, CutsLongListsOfFields) {
  data::PayloadTableBuilder builder(1, Limits{});
  PayloadObject row;
  for (int field = 0; field < 25; ++field) {
    row.emplace_back("field" + std::to_string(100 + field), PayloadValue{true});
  }
  ASSERT_TRUE(builder.Add(row).ok());
  const auto selection =
      SelectPayload("f", "wide", {"something else"}, true, std::move(builder).Build());
  EXPECT_TRUE(std::string(selection.status().message()).ends_with("field119 and 5 more."))
      << selection.status();
}

}  // namespace
}  // namespace simile::service

#include "service/payload_selection.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/payload_builder.h"
#include "service/refusal.h"
#include "simile/limits.h"
#include "simile/v1/types.pb.h"

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

v1::PayloadSelector Fields(const std::vector<std::string>& names) {
  v1::PayloadSelector selector;
  for (const std::string& name : names) selector.add_fields(name);
  return selector;
}

v1::PayloadSelector Of(v1::PayloadSelector::Selection selection) {
  v1::PayloadSelector selector;
  selector.set_selection(selection);
  return selector;
}

TEST(SelectPayloadTest, SelectsAllWithoutNames) {
  const data::PayloadTable payload = Films();
  for (const v1::PayloadSelector& all :
       {v1::PayloadSelector(), Of(v1::PayloadSelector::SELECTION_ALL)}) {
    EXPECT_TRUE(CheckPayloadSelector({"f"}, all, Limits{}).ok());
    const auto selection = SelectPayload({"f"}, "films", all, payload);
    ASSERT_TRUE(selection.ok());
    EXPECT_FALSE(selection->none);
    for (std::uint32_t number = 0; number < 3; ++number) EXPECT_TRUE(selection->Has(number));
  }
}

TEST(SelectPayloadTest, SelectsNoneWithoutPayload) {
  const data::PayloadTable payload = Films();
  const auto selection =
      SelectPayload({"f"}, "films", Of(v1::PayloadSelector::SELECTION_NONE), payload);
  ASSERT_TRUE(selection.ok());
  EXPECT_TRUE(selection->none);
}

TEST(SelectPayloadTest, SelectsEachNamedFieldOnce) {
  const data::PayloadTable payload = Films();
  const auto selection = SelectPayload({"f"}, "films", Fields({"year", "title", "year"}), payload);
  ASSERT_TRUE(selection.ok());
  EXPECT_FALSE(selection->none);
  EXPECT_TRUE(selection->Has(*payload.FieldNumber("title")));
  EXPECT_TRUE(selection->Has(*payload.FieldNumber("year")));
  EXPECT_FALSE(selection->Has(*payload.FieldNumber("genres")));
  EXPECT_EQ(selection->field_numbers.size(), 2U);
}

TEST(SelectPayloadTest, NamesTheNearestFieldAndAllOthers) {
  const auto selection =
      SelectPayload({"options.payload"}, "films", Fields({"year", "genre"}), Films());
  ExpectRefused(selection.status(),
                "options.payload.fields[1]: films has no field \"genre\". Did you mean \"genres\"? "
                "Fields: genres, title, year.",
                base::ErrorReason::kUnknownPayloadField);
}

TEST(SelectPayloadTest, SaysWhenThereIsNoPayloadAtAll) {
  const data::PayloadTable empty;
  const auto all = SelectPayload({"f"}, "vectors", {}, empty);
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->none);
  const auto selection = SelectPayload({"f"}, "vectors", Fields({"title"}), empty);
  EXPECT_EQ(std::string(selection.status().message()),
            "f.fields[0]: vectors has no field \"title\". It has no payload (no metadata.jsonl).");
}

TEST(SelectPayloadTest, CutsLongListsOfFields) {
  data::PayloadTableBuilder builder(1, Limits{});
  PayloadObject row;
  for (int field = 0; field < 25; ++field) {
    row.emplace_back("field" + std::to_string(100 + field), PayloadValue{true});
  }
  ASSERT_TRUE(builder.Add(row).ok());
  const auto selection =
      SelectPayload({"f"}, "wide", Fields({"something else"}), std::move(builder).Build());
  EXPECT_TRUE(std::string(selection.status().message()).ends_with("field119 and 5 more."))
      << selection.status();
}

}  // namespace
}  // namespace simile::service

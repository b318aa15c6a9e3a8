#include "service/requests/answer_options.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/payload/payload_table.h"
#include "filter/payload_index.h"
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

v1::PayloadSelector MakeSelector(v1::PayloadSelector::Selection selection) {
  v1::PayloadSelector selector;
  selector.set_selection(selection);
  return selector;
}

// Selects for a caller for whom all rows exist.
absl::StatusOr<PayloadSelection> Select(const FieldPath& field, std::string_view collection,
                                        const v1::PayloadSelector& selector,
                                        const data::PayloadTable& payload) {
  const auto index = filter::PayloadIndex::Build(payload);
  return SelectPayload(field, collection, selector, payload, index);
}

TEST(SelectPayloadTest, SelectsAllWithoutNames) {
  const data::PayloadTable payload = Films();
  for (const v1::PayloadSelector& all :
       {v1::PayloadSelector(), MakeSelector(v1::PayloadSelector::SELECTION_ALL)}) {
    EXPECT_TRUE(CheckPayloadSelector({"f"}, all, Limits{}).ok());
    const auto selection = Select({"f"}, "films", all, payload);
    ASSERT_TRUE(selection.ok());
    EXPECT_FALSE(selection->none);
    for (std::uint32_t number = 0; number < 3; ++number) EXPECT_TRUE(selection->Has(number));
  }
}

TEST(SelectPayloadTest, SelectsNoneWithoutPayload) {
  const data::PayloadTable payload = Films();
  const auto selection =
      Select({"f"}, "films", MakeSelector(v1::PayloadSelector::SELECTION_NONE), payload);
  ASSERT_TRUE(selection.ok());
  EXPECT_TRUE(selection->none);
}

TEST(SelectPayloadTest, SelectsEachNamedFieldOnce) {
  const data::PayloadTable payload = Films();
  const auto selection = Select({"f"}, "films", Fields({"year", "title", "year"}), payload);
  ASSERT_TRUE(selection.ok());
  EXPECT_FALSE(selection->none);
  EXPECT_TRUE(selection->Has(*payload.FieldNumber("title")));
  EXPECT_TRUE(selection->Has(*payload.FieldNumber("year")));
  EXPECT_FALSE(selection->Has(*payload.FieldNumber("genres")));
  EXPECT_EQ(selection->field_numbers.size(), 2U);
}

TEST(SelectPayloadTest, SelectsAFieldInsideAnObject) {
  data::PayloadTableBuilder builder(1, Limits{});
  ASSERT_TRUE(
      builder
          .Add({{"meta", PayloadValue{PayloadObject{{"year", PayloadValue{std::int64_t{1995}}}}}}})
          .ok());
  const data::PayloadTable payload = std::move(builder).Build();
  const auto selection = Select({"f"}, "films", Fields({"meta.year"}), payload);
  ASSERT_TRUE(selection.ok());
  EXPECT_TRUE(selection->Has(*payload.FieldNumber("meta.year")));
  EXPECT_FALSE(selection->Has(*payload.FieldNumber("meta")));
}

TEST(SelectPayloadTest, KnowsNoFieldThatDoesNotExistForTheCaller) {
  const data::PayloadTable payload = Films();
  const auto index = filter::PayloadIndex::Build(payload);
  // By name: genres, title, year.
  const filter::PayloadView visible(
      index, std::make_shared<const std::vector<bool>>(std::vector<bool>{false, true, false}));
  EXPECT_TRUE(SelectPayload({"f"}, "films", Fields({"title"}), payload, visible).ok());
  for (const char* const hidden : {"genres", "nothing"}) {
    const auto selection = SelectPayload({"f"}, "films", Fields({hidden}), payload, visible);
    ExpectRefused(selection.status(),
                  fmt::format("f.fields[0]: films has no field \"{}\". Fields: title.", hidden),
                  base::ErrorReason::kUnknownPayloadField);
  }
}

TEST(SelectPayloadTest, NamesTheNearestFieldAndAllOthers) {
  const auto selection = Select({"options.payload"}, "films", Fields({"year", "genre"}), Films());
  ExpectRefused(selection.status(),
                "options.payload.fields[1]: films has no field \"genre\". Did you mean \"genres\"? "
                "Fields: genres, title, year.",
                base::ErrorReason::kUnknownPayloadField);
}

TEST(SelectPayloadTest, SaysWhenThereIsNoPayloadAtAll) {
  const data::PayloadTable empty;
  const auto all = Select({"f"}, "vectors", {}, empty);
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->none);
  const auto selection = Select({"f"}, "vectors", Fields({"title"}), empty);
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
      Select({"f"}, "wide", Fields({"something else"}), std::move(builder).Build());
  EXPECT_TRUE(std::string(selection.status().message()).ends_with("field119 and 5 more."))
      << selection.status();
}

}  // namespace
}  // namespace simile::service

#include "service/replies/hit_columns.h"

#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/payload/field_rules.h"
#include "data/payload/payload_table.h"
#include "service/hits_of_columns.h"
#include "service/random_answer.h"
#include "service/replies/replies.h"
#include "simile/limits.h"

namespace simile::service {
namespace {

constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 20;

TEST(HitColumnsTest, HaveTheHitsOfTheOtherLayoutInRandomAnswers) {
  constexpr std::uint64_t kSeed = 44;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 10'000; ++i) {
    const RandomAnswer answer([&] { return random(); });
    ASSERT_EQ(CompareLayouts(answer.parts()), "") << i;
  }
}

// A collection of items with one payload field.
class OneFieldTest : public testing::Test {
 protected:
  //   separator  of the field's texts
  void Build(const std::vector<PayloadValue>& values, data::FieldType type,
             const std::string& separator = "") {
    std::vector<PayloadObject> rows;
    for (const PayloadValue& value : values) rows.push_back({{"field", value}});
    BuildRows(rows, type, separator);
  }
  void BuildRows(const std::vector<PayloadObject>& rows, data::FieldType type,
                 const std::string& separator = "") {
    auto dataset = std::make_shared<data::Dataset>();
    dataset->vectors = *data::Matrix::Create(rows.size(), 2);
    dataset->ids = data::IdIndex::OfRowNumbers(rows.size());
    data::PayloadTableBuilder payload(rows.size(), Limits{});
    for (const PayloadObject& row : rows) ASSERT_TRUE(payload.Add(row).ok());
    data::FieldRules rules;
    if (separator.empty()) rules.declared.push_back({"field", type});
    if (!separator.empty()) rules.separators.push_back({"field", separator});
    std::vector<std::string> notes;
    const absl::Status chosen = payload.ChooseTypes(rules, "metadata.jsonl", notes);
    ASSERT_TRUE(chosen.ok()) << chosen;
    dataset->payload = std::move(payload).Build();
    ASSERT_EQ(dataset->payload.fields()[0].type, type);
    auto snapshot = std::make_shared<engine::Snapshot>();
    snapshot->dataset = std::move(dataset);
    snapshot_ = std::move(snapshot);
    hits_.clear();
    for (Row row = 0; row < rows.size(); ++row) hits_.push_back({row, 1});
  }

  v1::HitColumns Columns(std::uint64_t bytes_max = kBytesMax) {
    ResultPage page;
    page.hits = hits_;
    const std::vector<ResultPage> pages = {page};
    const auto columns = HitColumns::Create(*snapshot_, shape_, sees_all_rows_, pages, bytes_max);
    v1::HitColumns message;
    if (columns == nullptr) return message;
    WireSizes sizes;
    ByteCounter counter(sizes, kBytesMax);
    columns->Encode(counter);
    std::string bytes(sizes.bytes, '\0');
    WireWriter writer(sizes, reinterpret_cast<std::uint8_t*>(bytes.data()));
    columns->Encode(writer);
    EXPECT_TRUE(message.ParseFromString(bytes));
    return message;
  }

  engine::SnapshotPtr snapshot_;
  std::vector<Hit> hits_;
  bool sees_all_rows_ = true;
  RowShape shape_{{.none = false, .all = true, .field_numbers = {}}};
};

TEST_F(OneFieldTest, HasWholeNumbersAsIntegersAndMarksNull) {
  Build({{std::int64_t{1995}}, {2001.0}, {}, {std::int64_t{-7}}}, data::FieldType::kInteger);
  const v1::HitColumns columns = Columns();
  const v1::PayloadColumn& column = columns.payload(0);
  EXPECT_EQ(column.states(), std::string("\1\1\2\1", 4));
  EXPECT_EQ(column.integers().size(), 4 * sizeof(std::int64_t));
  EXPECT_EQ(column.others_size(), 0);
}

TEST_F(OneFieldTest, KeepsValuesOfAnotherTypeInOthers) {
  Build({{std::int64_t{1}}, {std::string("two")}, {3.5}, {std::int64_t{4}}, {std::int64_t{5}}},
        data::FieldType::kInteger);
  const v1::PayloadColumn column = Columns().payload(0);
  EXPECT_EQ(column.states(), std::string("\1\3\3\1\1", 5));
  EXPECT_EQ(column.integers().size(), 5 * sizeof(std::int64_t));
  ASSERT_EQ(column.others_size(), 2);
  EXPECT_EQ(column.others(0).string_value(), "two");
  EXPECT_EQ(column.others(1).double_value(), 3.5);
}

TEST_F(OneFieldTest, HasTextsWithASeparatorAsTheyWereGiven) {
  Build({{std::string("a|b")}, {std::string("c")}, {PayloadList{{std::string("d")}}}},
        data::FieldType::kKeywords, "|");
  const v1::PayloadColumn column = Columns().payload(0);
  EXPECT_TRUE(column.list_offsets().empty());
  EXPECT_EQ(column.texts().utf8(), "a|bc");
  EXPECT_EQ(column.states(), std::string("\1\1\3", 3));
}

TEST_F(OneFieldTest, CountsItemsWithoutTheField) {
  std::vector<PayloadObject> rows(1'000);
  rows[0] = {{"field", PayloadValue{0.5}}};
  BuildRows(rows, data::FieldType::kNumber);
  const std::uint64_t bytes = Columns().ByteSizeLong();
  EXPECT_EQ(Columns(bytes - 200).ByteSizeLong(), 0U);
  EXPECT_GT(Columns(bytes + 200).ByteSizeLong(), 0U);
}

TEST_F(OneFieldTest, OfOneTypeHasNoStates) {
  Build({{std::string("a")}, {std::string("b")}, {std::string("a")}}, data::FieldType::kKeyword);
  const v1::HitColumns columns = Columns();
  EXPECT_TRUE(columns.payload(0).states().empty());
  EXPECT_EQ(columns.payload(0).texts().utf8(), "ab") << "each text once";
}

TEST_F(OneFieldTest, HasListsByOffsets) {
  const PayloadList two = {{std::string("x")}, {std::string("y")}};
  Build({{two}, {PayloadList{}}, {std::string("z")}}, data::FieldType::kKeywords);
  const v1::PayloadColumn column = Columns().payload(0);
  EXPECT_EQ(column.list_offsets(), std::string("\0\0\0\0\2\0\0\0\2\0\0\0\2\0\0\0", 16));
  EXPECT_EQ(column.states(), std::string("\1\1\3", 3));
  EXPECT_EQ(column.others(0).string_value(), "z") << "a text is no list";
}

TEST_F(OneFieldTest, HasAnItemOnce) {
  Build({{true}, {false}}, data::FieldType::kBoolean);
  hits_ = {{1, 3}, {0, 2}, {1, 1}};
  const v1::HitColumns columns = Columns();
  EXPECT_EQ(columns.items(), std::string("\0\0\0\0\1\0\0\0\0\0\0\0", 12));
  EXPECT_EQ(columns.payload(0).booleans(), std::string("\0\1", 2));
  EXPECT_EQ(columns.ids().integers().size(), 2 * sizeof(std::int64_t));
}

TEST_F(OneFieldTest, HasIntegerIdsOnlyForWhoSeesAllRows) {
  Build({{true}}, data::FieldType::kBoolean);
  EXPECT_TRUE(Columns().ids().has_integers());
  sees_all_rows_ = false;
  EXPECT_EQ(Columns().ids().texts().utf8(), "0");
}

TEST_F(OneFieldTest, IsNotMadeWhenItTakesTooMuch) {
  Build({{std::string(1'000, 'x')}, {std::string(1'000, 'y')}}, data::FieldType::kKeyword);
  EXPECT_EQ(Columns(1'500).ByteSizeLong(), 0U);
  EXPECT_EQ(Columns(15).ByteSizeLong(), 0U) << "two hits take 16 bytes";
  EXPECT_GT(Columns(2'200).ByteSizeLong(), 2'000U);
}

}  // namespace
}  // namespace simile::service

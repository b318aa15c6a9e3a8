#include "data/payload/payload_table.h"

#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/random_payload.h"
#include "simile/limits.h"

namespace simile::data {
namespace {

using testing::ElementsAre;

PayloadValue Text(std::string text) { return {std::move(text)}; }
PayloadValue Integer(std::int64_t value) { return {value}; }

TEST(PayloadTableTest, ReturnsTheRowsThatWereAdded) {
  constexpr std::uint64_t kSeed = 11;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937_64 random(kSeed);
  std::vector<PayloadObject> rows;
  PayloadTableBuilder builder(0, Limits{});
  for (int i = 0; i < 15'000; ++i) {
    PayloadObject row;
    for (int field = 0; field < 12; ++field) {
      if (random() % 2 == 0) row.emplace_back(fmt::format("f{}", field), RandomValue(random, 4));
    }
    std::shuffle(row.begin(), row.end(), random);
    ASSERT_TRUE(builder.Add(row).ok());
    rows.push_back(std::move(row));
  }
  const PayloadTable table = std::move(builder).Build();
  ASSERT_EQ(table.row_count(), rows.size());
  ASSERT_GT(table.bytes(), 3U << 20) << "the rows should fill several chunks";
  for (Row row = 0; row < rows.size(); ++row) {
    ASSERT_EQ(table.Read(row), rows[row]);
    for (const auto& member : rows[row]) {
      ASSERT_EQ(table.ReadField(row, *table.FieldNumber(member.first)), member.second);
    }
  }
}

// The fields inside the objects of a row, by name, null left out; members beyond the fourth name
// are none.
void AddNested(const PayloadObject& object, const std::string& prefix, std::size_t names,
               std::map<std::string, PayloadValue>& fields) {
  for (const auto& [name, value] : object) {
    if (std::holds_alternative<std::monostate>(value.value)) continue;
    fields.emplace(prefix + name, value);
    const auto* const inside = std::get_if<PayloadObject>(&value.value);
    if (inside == nullptr || names == kNamesOfFieldMax) continue;
    AddNested(*inside, fmt::format("{}{}.", prefix, name), names + 1, fields);
  }
}

TEST(PayloadTableTest, HasTheMembersOfObjectsAsFields) {
  constexpr std::uint64_t kSeed = 12;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937_64 random(kSeed);
  std::vector<PayloadObject> rows;
  PayloadTableBuilder builder(0, Limits{});
  for (int i = 0; i < 2'000; ++i) {
    PayloadObject row;
    for (const char* const name : {"a", "b", "c"}) {
      if (random() % 2 == 0) row.emplace_back(name, RandomValue(random, 5));
    }
    ASSERT_TRUE(builder.Add(row).ok());
    rows.push_back(std::move(row));
  }
  const PayloadTable table = std::move(builder).Build();
  std::size_t nested = 0;
  std::map<std::string, std::uint64_t> counts;
  for (Row row = 0; row < rows.size(); ++row) {
    ASSERT_EQ(table.Read(row), rows[row]);
    std::map<std::string, PayloadValue> expected;
    AddNested(rows[row], "", 1, expected);
    std::map<std::string, PayloadValue> visited;
    table.VisitFields(row, [&](std::uint32_t number, const PayloadValue& value) {
      if (!std::holds_alternative<std::monostate>(value.value)) {
        visited.emplace(table.fields()[number].name, value);
      }
    });
    ASSERT_EQ(visited, expected) << "row " << row;
    for (const auto& [name, value] : expected) {
      const FieldInfo& field = table.fields()[*table.FieldNumber(name)];
      ASSERT_EQ(field.is_nested, name.find('.') != std::string::npos) << name;
      ASSERT_EQ(table.ReadField(row, *table.FieldNumber(name)), value) << name;
      ++counts[name];
      if (field.is_nested) ++nested;
    }
  }
  EXPECT_GT(nested, 500U);
  for (const FieldInfo& field : table.fields()) {
    EXPECT_EQ(field.values.count(), counts[field.name]) << field.name;
  }
}

std::vector<std::string> ListFieldNames(const PayloadTable& table) {
  std::vector<std::string> names;
  for (const FieldInfo& field : table.fields()) names.push_back(field.name);
  return names;
}

PayloadObject Wide(const char* prefix, int count) {
  PayloadObject object;
  for (int i = 0; i < count; ++i) object.emplace_back(fmt::format("{}{}", prefix, i), Integer(i));
  return object;
}

TEST(PayloadTableTest, LeavesOutTheFieldsOfObjectsThatHaveTooMany) {
  Limits limits;
  limits.payload_fields_per_collection_max = 8;
  PayloadTableBuilder builder(0, limits);
  ASSERT_TRUE(builder.Add({{"small", {PayloadObject{{"x", Integer(1)}}}}}).ok());
  ASSERT_TRUE(builder.Add({{"large", {Wide("a", 4)}}}).ok());  // 7 fields
  ASSERT_TRUE(builder.Add({{"large", {Wide("b", 4)}}, {"year", Integer(1)}}).ok());
  ASSERT_TRUE(builder.Add({{"large", {PayloadObject{{"a0", Integer(1)}}}}}).ok());
  std::vector<std::string> notes;
  ASSERT_TRUE(builder.ChooseTypes({}, "m.jsonl", notes).ok());
  const PayloadTable table = std::move(builder).Build();
  EXPECT_THAT(ListFieldNames(table), ElementsAre("large", "small", "small.x", "year"));
  EXPECT_EQ(table.ReadField(0, *table.FieldNumber("small.x")), Integer(1));
  EXPECT_EQ(table.Read(1), (PayloadObject{{"large", {Wide("a", 4)}}}));
  EXPECT_THAT(notes,
              ElementsAre("m.jsonl: \"large\" holds objects with too many different fields (a "
                          "collection may have 8), so filters can only ask whether a row has "
                          "it"));
}

TEST(PayloadTableTest, LetsFieldsOfRowsTakeThePlacesOfFieldsInsideObjects) {
  Limits limits;
  limits.payload_fields_per_collection_max = 4;
  PayloadTableBuilder builder(0, limits);
  ASSERT_TRUE(builder.Add({{"o", {Wide("a", 3)}}}).ok());
  ASSERT_TRUE(builder.Add({{"b", Integer(1)}, {"c", Integer(2)}, {"d", Integer(3)}}).ok());
  ASSERT_TRUE(builder.Add({{"o", {Wide("a", 3)}}}).ok());
  EXPECT_EQ(builder.Add({{"e", Integer(4)}}).message(),
            "field \"e\" is one too many; a collection may have 4 different fields: keep rare ones "
            "in one object, or in one list of texts as in \"attributes\": [\"color=red\"]");
  const PayloadTable table = std::move(builder).Build();
  EXPECT_THAT(ListFieldNames(table), ElementsAre("b", "c", "d", "o"));
  EXPECT_EQ(table.ReadField(1, *table.FieldNumber("d")), Integer(3));
}

TEST(PayloadTableTest, GivesAFieldOfRowsPrecedenceAndReadsNoDotsInsideNames) {
  PayloadTableBuilder builder(0, Limits{});
  ASSERT_TRUE(builder
                  .Add({{"meta.year", Integer(2001)},
                        {"meta",
                         {PayloadObject{
                             {"year", Integer(1999)}, {"lang", Text("en")}, {"a.b", Integer(1)}}}},
                        {"x.y", {PayloadObject{{"z", Integer(1)}}}},
                        {"raw", {PayloadObject{{"k", Integer(1)}}}}})
                  .ok());
  FieldRules rules;
  rules.declared = {{"raw", FieldType::kOther}};
  std::vector<std::string> notes;
  ASSERT_TRUE(builder.ChooseTypes(rules, "m.jsonl", notes).ok());
  const PayloadTable table = std::move(builder).Build();
  EXPECT_THAT(ListFieldNames(table), ElementsAre("meta", "meta.lang", "meta.year", "raw", "x.y"));
  EXPECT_EQ(table.ReadField(0, *table.FieldNumber("meta.year")), Integer(2001));
  EXPECT_THAT(notes,
              ElementsAre("m.jsonl: \"meta.year\" is a field of rows, and one inside an "
                          "object, which filters do not read",
                          "m.jsonl: \"a.b\" has a dot in its name, so filters do not read it "
                          "inside an object, and no fields inside it"));
}

// Chunks that are full to the last byte, rows without a field between them, several blocks of rows.
TEST(PayloadTableTest, ReturnsRowsAtTheEdgesOfChunks) {
  constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  constexpr std::size_t kTextOverhead = 5;  // number, tag, and the length of such a text
  const PayloadObject full = {{"a", Text(std::string(kChunkBytes - kTextOverhead, 'x'))}};
  const PayloadObject half = {{"a", Text(std::string(kChunkBytes / 2 - kTextOverhead, 'y'))}};
  std::vector<const PayloadObject*> rows;
  const PayloadObject empty;
  const PayloadObject small = {{"a", Integer(7)}};
  for (const PayloadObject* const row :
       {&empty, &full, &empty, &small, &half, &half, &empty, &full, &full, &half, &small}) {
    rows.push_back(row);
  }
  for (int i = 0; i < 10'000; ++i) rows.push_back(i % 3'000 == 0 ? &half : &small);
  rows.push_back(&empty);
  PayloadTableBuilder builder(rows.size(), Limits{});
  for (const PayloadObject* const row : rows) ASSERT_TRUE(builder.Add(*row).ok());
  const PayloadTable table = std::move(builder).Build();
  for (Row row = 0; row < rows.size(); ++row) ASSERT_EQ(table.Read(row), *rows[row]) << row;
}

TEST(PayloadTableTest, TakesAsManyBytesAsIsEstimated) {
  constexpr std::size_t kRows = 100'000;
  PayloadTableBuilder builder(kRows, Limits{});
  for (std::size_t row = 0; row < kRows; ++row) {
    ASSERT_TRUE(builder.Add({{"title", Text(fmt::format("film {}", row))}}).ok());
  }
  const PayloadTable table = std::move(builder).Build();
  const auto estimated = static_cast<double>(
      PayloadTable::BytesFor(kRows, table.packed_bytes(), table.fields().size()));
  EXPECT_NEAR(static_cast<double>(table.bytes()), estimated, estimated * 0.01);
}

TEST(PayloadTableTest, KeepsExtremeNumbers) {
  const PayloadObject row = {{"a", Integer(std::numeric_limits<std::int64_t>::min())},
                             {"b", Integer(std::numeric_limits<std::int64_t>::max())},
                             {"c", {5e-324}},
                             {"d", {-0.0}},
                             {"e", Text(std::string("\0x", 2))}};
  PayloadTableBuilder builder(1, Limits{});
  ASSERT_TRUE(builder.Add(row).ok());
  const PayloadTable table = std::move(builder).Build();
  EXPECT_EQ(table.Read(0), row);
  EXPECT_TRUE(std::signbit(std::get<double>(table.ReadField(0, *table.FieldNumber("d")).value)));
}

TEST(PayloadTableTest, DescribesFieldsByName) {
  PayloadTableBuilder builder(3, Limits{});
  ASSERT_TRUE(
      builder.Add({{"year", Integer(1995)}, {"title", Text("A")}, {"score", Integer(1)}}).ok());
  ASSERT_TRUE(builder.Add({{"year", {}}, {"tags", {PayloadList{}}}, {"score", {0.5}}}).ok());
  ASSERT_TRUE(
      builder
          .Add({{"title", Integer(7)}, {"ok", {true}}, {"gone", {}}, {"more", {PayloadObject{}}}})
          .ok());
  const PayloadTable table = std::move(builder).Build();
  std::vector<std::string> described;
  for (const FieldInfo& field : table.fields()) {
    described.push_back(
        fmt::format("{} {} {}", field.name, NameOf(field.type), field.values.count()));
  }
  EXPECT_THAT(described,
              ElementsAre("gone other 0", "more other 1", "ok boolean 1", "score number 2",
                          "tags list of keywords 1", "title other 2", "year integer 1"));
  for (std::uint32_t number = 0; number < table.fields().size(); ++number) {
    EXPECT_EQ(table.FieldNumber(table.fields()[number].name), number);
  }
  EXPECT_EQ(table.FieldNumber("genre"), std::nullopt);
  EXPECT_EQ(table.ReadField(0, *table.FieldNumber("tags")), PayloadValue{});
}

TEST(PayloadTableTest, RefusesOneFieldTooMany) {
  Limits limits;
  limits.payload_fields_per_collection_max = 2;
  PayloadTableBuilder builder(2, limits);
  ASSERT_TRUE(builder.Add({{"a", {}}, {"b", {}}}).ok());
  const absl::Status status = builder.Add({{"a", {}}, {"c", {}}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "field \"c\" is one too many; a collection may have 2 different fields: keep rare ones "
            "in one object, or in one list of texts as in \"attributes\": [\"color=red\"]");
}

TEST(PayloadTableTest, RefusesARowLargerThanAChunk) {
  PayloadTableBuilder builder(1, Limits{});
  const absl::Status status = builder.Add({{"a", Text(std::string(1U << 20, 'x'))}});
  EXPECT_EQ(std::string(status.message()),
            "the object takes 1,048,581 bytes packed; at most 1,048,576");
}

TEST(PayloadTableTest, IsEmptyByDefault) {
  const PayloadTable table;
  EXPECT_EQ(table.row_count(), 0U);
  EXPECT_TRUE(table.fields().empty());
  EXPECT_EQ(table.FieldNumber("title"), std::nullopt);
  EXPECT_EQ(table.bytes(), 0U);
}

}  // namespace
}  // namespace simile::data

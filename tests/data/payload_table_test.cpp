#include "data/payload_table.h"

#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/payload_builder.h"
#include "simile/limits.h"

namespace simile::data {
namespace {

using testing::ElementsAre;

PayloadValue Text(std::string text) { return {std::move(text)}; }
PayloadValue Integer(std::int64_t value) { return {value}; }

// A value of any kind, lists and objects to the given depth.
PayloadValue RandomValue(std::mt19937_64& random, int depth) {
  switch (random() % (depth > 0 ? 8 : 6)) {
    case 0:
      return {};
    case 1:
      return {random() % 2 == 0};
    case 2:
      return {static_cast<std::int64_t>(random())};
    case 3:
      return {static_cast<std::int64_t>(random() % 512) - 256};
    case 4:
      return {std::ldexp(static_cast<double>(random() % 1000), static_cast<int>(random() % 99))};
    case 5:
      return {std::string(random() % 300, static_cast<char>('a' + random() % 26))};
    case 6: {
      PayloadList list(random() % 5);
      for (PayloadValue& value : list) value = RandomValue(random, depth - 1);
      return {std::move(list)};
    }
    default: {
      PayloadObject object(random() % 5);
      for (std::size_t i = 0; i < object.size(); ++i) {
        object[i] = {fmt::format("name{}", i), RandomValue(random, depth - 1)};
      }
      return {std::move(object)};
    }
  }
}

// The size of a simile.v1.Value and its map entry, computed from the wire format.
std::uint64_t VarintBytes(std::uint64_t value) {
  return value < 0x80 ? 1 : 1 + VarintBytes(value >> 7);
}
std::uint64_t Field(std::uint64_t content) { return 1 + VarintBytes(content) + content; }
std::uint64_t WireBytes(const PayloadValue& value);
std::uint64_t WireBytes(const PayloadObject& object) {
  std::uint64_t bytes = 0;
  for (const auto& [name, value] : object)
    bytes += Field(Field(name.size()) + Field(WireBytes(value)));
  return bytes;
}
std::uint64_t WireBytes(const PayloadValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value.value)) return Field(text->size());
  if (const auto* const integer = std::get_if<std::int64_t>(&value.value)) {
    return 1 + VarintBytes(static_cast<std::uint64_t>(*integer));
  }
  if (std::holds_alternative<double>(value.value)) return 9;
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    std::uint64_t bytes = 0;
    for (const PayloadValue& item : *list) bytes += Field(WireBytes(item));
    return Field(bytes);
  }
  if (const auto* const object = std::get_if<PayloadObject>(&value.value)) {
    return Field(WireBytes(*object));
  }
  return 2;
}

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
    ASSERT_GE(table.RowBytes(row), WireBytes(rows[row]));
    PayloadObject some;
    const std::uint32_t wanted[] = {*table.FieldNumber("f1"), *table.FieldNumber("f11"),
                                    *table.FieldNumber("f7")};
    for (const auto& member : rows[row]) {
      if (member.first == "f1" || member.first == "f11" || member.first == "f7")
        some.push_back(member);
      ASSERT_EQ(table.ReadField(row, *table.FieldNumber(member.first)), member.second);
    }
    ASSERT_EQ(table.Read(row, wanted), some);
  }
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
    described.push_back(fmt::format("{} {} {}", field.name, field.type, field.rows));
  }
  EXPECT_THAT(described,
              ElementsAre("gone mixed 0", "more object 1", "ok boolean 1", "score number 2",
                          "tags list 1", "title mixed 2", "year integer 1"));
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
            "field \"c\" is one too many; a collection may have 2 different fields");
}

TEST(PayloadTableTest, RefusesARowLargerThanAChunk) {
  PayloadTableBuilder builder(1, Limits{});
  const absl::Status status = builder.Add({{"a", Text(std::string(1U << 20, 'x'))}});
  EXPECT_EQ(std::string(status.message()),
            "the object takes 1,048,582 bytes packed; at most 1,048,576");
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

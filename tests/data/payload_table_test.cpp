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
            "together in one list of texts, as in \"attributes\": [\"color=red\"]");
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

#include "engine/search/row_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace simile::engine {
namespace {

constexpr std::size_t kMany = OrderedRows::kVisitsOfPiece + 10;

// Reads to the end. Returns how many pieces that took.
std::size_t ReadAll(OrderedRows& rows) {
  std::size_t pieces = 0;
  for (; !rows.done(); ++pieces) rows.ReadPiece();
  return pieces;
}

TEST(OrderedRowsTest, VisitsAListInPieces) {
  std::vector<Row> list(2 * kMany);
  std::iota(list.begin(), list.end(), 0U);
  std::ranges::reverse(list);
  const RowOrder order({}, &list, list.size());
  RowMask mask(list.size());
  mask.Allow(0);
  mask.Allow(1);
  const std::vector<Row> excluded{1};
  OrderedRows rows(order, 1, &mask, excluded);
  EXPECT_EQ(ReadAll(rows), 3U);
  EXPECT_EQ(std::vector<Row>(rows.rows().begin(), rows.rows().end()), std::vector<Row>{0});
}

TEST(OrderedRowsTest, EndsAsSoonAsThereAreEnough) {
  std::vector<Row> list(3 * kMany);
  std::iota(list.begin(), list.end(), 0U);
  const RowOrder order({}, &list, list.size());
  OrderedRows rows(order, 2, nullptr, {});
  EXPECT_EQ(ReadAll(rows), 1U);
  EXPECT_EQ(rows.rows().size(), 2U);
  EXPECT_EQ(rows.listed_count(), 2U);
}

// Row 3 has the greatest value, the others the same one, and the last ten have none.
TEST(OrderedRowsTest, GoesOnWithinEqualValuesAndThenWithRowsWithoutAValue) {
  std::vector<std::int64_t> values(kMany, 5);
  values[3] = 6;
  std::vector<Row> with_value(kMany);
  std::iota(with_value.begin(), with_value.end(), 0U);
  const filter::OrderedColumn<std::int64_t> column(values, with_value);
  const std::size_t row_count = kMany + 10;
  const RowOrder order("year", &column, row_count);
  OrderedRows rows(order, row_count, nullptr, {});
  EXPECT_EQ(ReadAll(rows), 3U) << "one and a bit for the values, one and a bit for all rows";
  std::vector<Row> expected(row_count);
  std::iota(expected.begin(), expected.end(), 0U);
  std::rotate(expected.begin(), expected.begin() + 3, expected.begin() + 4);
  EXPECT_TRUE(std::ranges::equal(rows.rows(), expected));
  EXPECT_EQ(rows.listed_count(), kMany) << "those with a value";
}

}  // namespace
}  // namespace simile::engine

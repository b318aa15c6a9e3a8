#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "filter/ordered_column.h"
#include "simile/row_mask.h"

namespace simile::engine {

// All rows of a snapshot in an order that does not depend on vectors: the greatest values of a
// column first, or a list of rows; equal values by row; rows without a value last, by row. Borrows
// the column from the snapshot.
class RowOrder {
 public:
  using Column =
      std::variant<const filter::OrderedColumn<std::int64_t>*,
                   const filter::OrderedColumn<filter::Number>*, const std::vector<Row>*>;
  //   field  whose values the column has; empty for a list of rows
  RowOrder(std::string_view field, Column column, std::size_t row_count)
      : field_(field), column_(column), row_count_(row_count) {}

  // Of a list of rows that it keeps.
  RowOrder(std::shared_ptr<const std::vector<Row>> rows, std::size_t row_count)
      : column_(rows.get()), rows_(std::move(rows)), row_count_(row_count) {}

  const std::string& field() const { return field_; }
  const Column& column() const { return column_; }
  std::size_t row_count() const { return row_count_; }

 private:
  std::string field_;
  Column column_;
  std::shared_ptr<const std::vector<Row>> rows_;  // that column_ is; null where it is borrowed
  std::size_t row_count_;
};

// Reads the first rows of an order that may be returned, a piece at a time. Borrows all it is made
// from; used by one thread.
class OrderedRows {
 public:
  //   mask      rows that may be returned; null for all
  //   excluded  rows that may not, ascending
  // Throws std::bad_alloc, as ReadPiece does.
  OrderedRows(const RowOrder& order, std::size_t wanted, const RowMask* mask,
              std::span<const Row> excluded);

  bool done() const { return rows_.size() == wanted_ || next_row_ == order_.row_count(); }
  // Visits the next rows, kVisitsOfPiece of them at most.
  void ReadPiece();
  // Those found so far.
  std::span<const Row> rows() const { return rows_; }
  // How many of these the order lists: the others have no value in it, and come last by row.
  std::size_t listed_count() const { return all_listed_ ? listed_count_ : rows_.size(); }

  // At about 10 ns each, estimated.
  static constexpr std::size_t kVisitsOfPiece = 1U << 18;

 private:
  void Add(Row row);

  const RowOrder& order_;
  const std::size_t wanted_;
  const RowMask* const mask_;
  const std::span<const Row> excluded_;
  filter::VisitedPlace place_;
  bool all_listed_ = false;       // the rows that the order lists have been visited
  std::size_t listed_count_ = 0;  // of rows_, once all_listed_
  // Made by the first piece: those that wait for their turn take no memory. First the rows that
  // have been; once all_listed_, those that are left.
  RowMask others_{0};
  std::size_t next_row_ = 0;  // of others_, to be visited
  std::vector<Row> rows_;
};

}  // namespace simile::engine

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

  // The order of a list of rows, which the order owns.
  RowOrder(std::shared_ptr<const std::vector<Row>> rows, std::size_t row_count)
      : column_(rows.get()), rows_(std::move(rows)), row_count_(row_count) {}

  const std::string& field() const { return field_; }
  const Column& column() const { return column_; }
  std::size_t row_count() const { return row_count_; }

 private:
  std::string field_;
  Column column_;
  std::shared_ptr<const std::vector<Row>>
      rows_;  // the list behind column_; null when column_ is borrowed
  std::size_t row_count_;
};

// Reads the first rows of an order that may be returned, a piece at a time. Borrows its arguments;
// used by one thread.
class OrderedRows {
 public:
  //   mask      rows that may be returned; null for all
  //   excluded  rows that may not, ascending
  // Throws std::bad_alloc, as ReadPiece does.
  OrderedRows(const RowOrder& order, std::size_t wanted, const RowMask* mask,
              std::span<const Row> excluded);

  bool done() const { return rows_.size() == wanted_ || next_row_ == order_.row_count(); }
  // Visits the next rows, at most kVisitsOfPiece.
  void ReadPiece();
  // The rows found so far.
  std::span<const Row> rows() const { return rows_; }
  // How many of rows() the order lists. The other rows have no value and come last, by row.
  std::size_t listed_count() const { return all_listed_ ? listed_count_ : rows_.size(); }

  // An estimated 10 ns for each visit.
  static constexpr std::size_t kVisitsOfPiece = 1U << 18;

 private:
  void Add(Row row);

  const RowOrder& order_;
  const std::size_t wanted_;
  const RowMask* const mask_;
  const std::span<const Row> excluded_;
  filter::VisitedPlace place_;
  bool all_listed_ = false;       // whether all rows that the order lists were visited
  std::size_t listed_count_ = 0;  // of rows_, once all_listed_
  // First the rows that were visited; once all_listed_, the rows that are left. Made by the first
  // piece, so that a waiting query takes no memory.
  RowMask others_{0};
  std::size_t next_row_ = 0;  // the next row of others_ to visit
  std::vector<Row> rows_;
};

}  // namespace simile::engine

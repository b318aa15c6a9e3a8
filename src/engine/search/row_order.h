#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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
  using Column = std::variant<const filter::OrderedColumn<std::int64_t>*,
                              const filter::OrderedColumn<double>*, const std::vector<Row>*>;
  //   field  whose values the column has; empty for a list of rows
  RowOrder(std::string_view field, Column column, std::size_t row_count)
      : field_(field), column_(column), row_count_(row_count) {}

  const std::string& field() const { return field_; }
  // The first rows that pass the mask (null: all) and are not excluded (ascending).
  // Cost: visits rows until there are enough, at most all.
  std::vector<Row> First(std::size_t wanted, const RowMask* mask,
                         std::span<const Row> excluded) const;

 private:
  std::string field_;
  Column column_;
  std::size_t row_count_;
};

}  // namespace simile::engine

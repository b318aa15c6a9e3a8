#include "engine/search/row_order.h"

#include <algorithm>

namespace simile::engine {
namespace {

template <class Visit>
void VisitInOrder(const std::vector<Row>& rows, Visit visit) {
  for (const Row row : rows) {
    if (!visit(row)) return;
  }
}

template <class Value, class Visit>
void VisitInOrder(const filter::OrderedColumn<Value>& column, Visit visit) {
  column.VisitDescending(visit);
}

}  // namespace

std::vector<Row> RowOrder::First(std::size_t wanted, const RowMask* mask,
                                 std::span<const Row> excluded) const {
  std::vector<Row> rows;
  // Adds the row if it may be returned. Returns whether more are wanted.
  const auto add = [&](Row row) {
    const bool passes = (mask == nullptr || mask->Allows(row)) &&
                        !std::binary_search(excluded.begin(), excluded.end(), row);
    if (passes && rows.size() < wanted) rows.push_back(row);
    return rows.size() < wanted;
  };
  RowMask visited(row_count_);
  const auto visit = [&](Row row) {
    visited.Allow(row);
    return add(row);
  };
  std::visit([&](const auto* column) { VisitInOrder(*column, visit); }, column_);
  if (rows.size() == wanted) return rows;
  visited.Invert();  // now the rows without a value
  visited.ForEachAllowed(0, static_cast<Row>(row_count_), add);
  return rows;
}

}  // namespace simile::engine

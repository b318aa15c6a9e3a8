#include "engine/search/row_order.h"

#include <algorithm>

namespace simile::engine {
namespace {

template <class Visit>
void VisitInOrder(const std::vector<Row>& rows, filter::VisitedPlace& place, Visit visit) {
  while (place.above < rows.size()) {
    if (!visit(rows[place.above++])) return;
  }
}

template <class Value, class Visit>
void VisitInOrder(const filter::OrderedColumn<Value>& column, filter::VisitedPlace& place,
                  Visit visit) {
  column.VisitDescending(place, visit);
}

}  // namespace

OrderedRows::OrderedRows(const RowOrder& order, std::size_t wanted, const RowMask* mask,
                         std::span<const Row> excluded)
    : order_(order), wanted_(wanted), mask_(mask), excluded_(excluded) {}

void OrderedRows::ReadPiece() {
  if (others_.row_count() == 0) others_ = RowMask(order_.row_count());
  std::size_t visits_left = kVisitsOfPiece;
  if (!all_listed_) {
    const auto visit = [&](Row row) {
      others_.Allow(row);
      Add(row);
      return --visits_left > 0 && rows_.size() < wanted_;
    };
    std::visit([&](const auto* column) { VisitInOrder(*column, place_, visit); }, order_.column());
    if (visits_left == 0 || rows_.size() == wanted_) return;
    all_listed_ = true;
    listed_count_ = rows_.size();
    others_.Invert();
  }
  const std::size_t end = std::min(order_.row_count(), next_row_ + visits_left);
  others_.ForEachAllowed(static_cast<Row>(next_row_), static_cast<Row>(end),
                         [this](Row row) { Add(row); });
  next_row_ = end;
}

void OrderedRows::Add(Row row) {
  const bool passes = (mask_ == nullptr || mask_->Allows(row)) &&
                      !std::binary_search(excluded_.begin(), excluded_.end(), row);
  if (passes && rows_.size() < wanted_) rows_.push_back(row);
}

}  // namespace simile::engine

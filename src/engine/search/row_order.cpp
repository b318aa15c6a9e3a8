#include "engine/search/row_order.h"

#include <algorithm>
#include <utility>

namespace simile::engine {
namespace {

// Collects the rows that may be returned, in the order visited, until there are enough.
class RowCollector {
 public:
  RowCollector(std::size_t row_count, std::size_t wanted, const RowMask* mask,
               std::span<const Row> excluded)
      : visited_(row_count), wanted_(wanted), mask_(mask), excluded_(excluded) {}

  // Returns whether more are wanted.
  bool Visit(Row row) {
    visited_.Allow(row);
    return AddIfPassing(row);
  }
  // Visits all rows not visited yet, ascending.
  void VisitOthers() {
    if (rows_.size() == wanted_) return;
    visited_.Invert();
    visited_.ForEachAllowed(0, static_cast<Row>(visited_.row_count()),
                            [this](Row row) { AddIfPassing(row); });
  }
  std::vector<Row> rows() && { return std::move(rows_); }

 private:
  bool AddIfPassing(Row row) {
    const bool passes = (mask_ == nullptr || mask_->Allows(row)) &&
                        !std::binary_search(excluded_.begin(), excluded_.end(), row);
    if (passes && rows_.size() < wanted_) rows_.push_back(row);
    return rows_.size() < wanted_;
  }

  RowMask visited_;
  const std::size_t wanted_;
  const RowMask* const mask_;
  const std::span<const Row> excluded_;
  std::vector<Row> rows_;
};

}  // namespace

std::vector<Row> RowOrder::First(std::size_t wanted, const RowMask* mask,
                                 std::span<const Row> excluded) const {
  RowCollector collector(row_count_, wanted, mask, excluded);
  const auto visit = [&](Row row) { return collector.Visit(row); };
  if (const auto* const list = std::get_if<const std::vector<Row>*>(&column_)) {
    for (const Row row : **list) {
      if (!visit(row)) break;
    }
  } else if (const auto* const whole =
                 std::get_if<const filter::OrderedColumn<std::int64_t>*>(&column_)) {
    (*whole)->VisitDescending(visit);
  } else {
    std::get<const filter::OrderedColumn<double>*>(column_)->VisitDescending(visit);
  }
  collector.VisitOthers();
  return std::move(collector).rows();
}

}  // namespace simile::engine

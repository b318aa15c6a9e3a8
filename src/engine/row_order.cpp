#include "engine/row_order.h"

#include <algorithm>
#include <utility>

namespace simile::engine {
namespace {

// Takes rows in the order they come until there are enough, those that may be returned.
class Taker {
 public:
  Taker(std::size_t row_count, std::size_t wanted, const RowMask* mask,
        std::span<const Row> excluded)
      : met_(row_count), wanted_(wanted), mask_(mask), excluded_(excluded) {}

  // Whether more are wanted.
  bool Take(Row row) {
    met_.Allow(row);
    return Consider(row);
  }
  // All rows that have not come yet.
  void TakeOthers() {
    if (rows_.size() == wanted_) return;
    met_.Invert();
    met_.ForEachAllowed(0, static_cast<Row>(met_.row_count()), [this](Row row) { Consider(row); });
  }
  std::vector<Row> rows() && { return std::move(rows_); }

 private:
  bool Consider(Row row) {
    const bool passes = (mask_ == nullptr || mask_->Allows(row)) &&
                        !std::binary_search(excluded_.begin(), excluded_.end(), row);
    if (passes && rows_.size() < wanted_) rows_.push_back(row);
    return rows_.size() < wanted_;
  }

  RowMask met_;
  const std::size_t wanted_;
  const RowMask* const mask_;
  const std::span<const Row> excluded_;
  std::vector<Row> rows_;
};

}  // namespace

std::vector<Row> RowOrder::First(std::size_t wanted, const RowMask* mask,
                                 std::span<const Row> excluded) const {
  Taker taker(row_count_, wanted, mask, excluded);
  const auto take = [&](Row row) { return taker.Take(row); };
  if (const auto* const list = std::get_if<const std::vector<Row>*>(&column_)) {
    for (const Row row : **list) {
      if (!take(row)) break;
    }
  } else if (const auto* const whole =
                 std::get_if<const filter::OrderedColumn<std::int64_t>*>(&column_)) {
    (*whole)->VisitDescending(take);
  } else {
    std::get<const filter::OrderedColumn<double>*>(column_)->VisitDescending(take);
  }
  taker.TakeOthers();
  return std::move(taker).rows();
}

}  // namespace simile::engine

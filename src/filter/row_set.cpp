#include "filter/row_set.h"

#include <roaring/roaring.hh>

namespace simile::filter {

struct RowSet::Bitmap {
  Roaring rows;
};

RowSet::RowSet() : bitmap_(std::make_unique<Bitmap>()) {}

RowSet::RowSet(std::span<const Row> rows) : RowSet() {
  bitmap_->rows.addMany(rows.size(), rows.data());
  bitmap_->rows.runOptimize();
  bitmap_->rows.shrinkToFit();
}

RowSet::~RowSet() = default;
RowSet::RowSet(RowSet&&) noexcept = default;
RowSet& RowSet::operator=(RowSet&&) noexcept = default;

std::uint64_t RowSet::size() const { return bitmap_->rows.cardinality(); }

void RowSet::AddTo(RowMask& mask) const {
  bitmap_->rows.iterate(
      [](Row row, void* into) {
        static_cast<RowMask*>(into)->Allow(row);
        return true;
      },
      &mask);
}

// In memory a bitmap takes about what it takes written down.
std::uint64_t RowSet::bytes() const { return sizeof(Bitmap) + bitmap_->rows.getSizeInBytes(false); }

}  // namespace simile::filter

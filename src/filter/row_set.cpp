#include "filter/row_set.h"

#include <algorithm>
#include <bit>

#include <roaring/roaring.hh>

namespace simile::filter {

namespace {

// When at least one row in 32 is in the set, one bit for each row takes hardly more memory than a
// Roaring bitmap and is much faster.
constexpr std::size_t kPlainShare = 32;

bool IsPlain(std::uint64_t rows, std::size_t row_count) { return rows >= row_count / kPlainShare; }

}  // namespace

struct RowSet::Bitmap {
  Roaring rows;
};

RowSet::RowSet() = default;

RowSet::RowSet(std::span<const Row> rows, std::size_t row_count) : size_(rows.size()) {
  if (rows.empty()) return;
  if (IsPlain(rows.size(), row_count)) {
    mask_.emplace(row_count);
    for (const Row row : rows) mask_->Allow(row);
    return;
  }
  bitmap_ = std::make_unique<Bitmap>();
  bitmap_->rows.addMany(rows.size(), rows.data());
  bitmap_->rows.runOptimize();
  bitmap_->rows.shrinkToFit();
}

RowSet::~RowSet() = default;
RowSet::RowSet(RowSet&&) noexcept = default;
RowSet& RowSet::operator=(RowSet&&) noexcept = default;

std::uint64_t RowSet::looks() const { return mask_ ? mask_->row_count() / 64 + 1 : size_; }

void RowSet::AddTo(RowMask& mask) const {
  if (mask_) return mask.UniteWith(*mask_);
  if (bitmap_ == nullptr) return;
  bitmap_->rows.iterate(
      [](Row row, void* into) {
        static_cast<RowMask*>(into)->Allow(row);
        return true;
      },
      &mask);
}

std::uint64_t RowSet::CountAllowed(const RowMask& mask) const {
  if (size_ == 0) return 0;
  RowMask both(mask.row_count());
  AddTo(both);
  both.IntersectWith(mask);
  return both.AllowedCount();
}

std::optional<Row> RowSet::FirstAllowed(const RowMask& mask) const {
  if (mask_) {
    for (std::size_t word = 0; word < mask.words().size(); ++word) {
      const std::uint64_t both = mask.words()[word] & mask_->words()[word];
      if (both != 0)
        return static_cast<Row>(word * 64 + static_cast<unsigned>(std::countr_zero(both)));
    }
    return std::nullopt;
  }
  if (bitmap_ == nullptr) return std::nullopt;
  for (const Row row : bitmap_->rows) {
    if (mask.Allows(row)) return row;
  }
  return std::nullopt;
}

std::uint64_t RowSet::bytes() const {
  if (mask_) return mask_->bytes();
  // The size in memory is about the serialized size.
  return bitmap_ == nullptr ? 0 : sizeof(Bitmap) + bitmap_->rows.getSizeInBytes(false);
}

std::uint64_t RowSet::BytesFor(std::uint64_t rows, std::size_t row_count) {
  if (rows == 0) return 0;
  if (IsPlain(rows, row_count)) return (row_count + 63) / 64 * sizeof(std::uint64_t);
  // Roaring keeps 65,536 rows in a container, with two bytes for each row in the set.
  constexpr std::size_t kRowsOfContainer = 65'536;
  constexpr std::uint64_t kContainerBytes = 8;
  const std::uint64_t containers =
      std::min<std::uint64_t>(rows, (row_count + kRowsOfContainer - 1) / kRowsOfContainer);
  return sizeof(Bitmap) + containers * kContainerBytes + rows * sizeof(std::uint16_t);
}

}  // namespace simile::filter

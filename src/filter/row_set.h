#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "simile/row_mask.h"

namespace simile::filter {

// Rows in a compressed bitmap (Roaring). Immutable; safe to share.
class RowSet {
 public:
  RowSet();
  // Cost: O(rows). REQUIRES: ascending, distinct.
  explicit RowSet(std::span<const Row> rows);
  ~RowSet();
  RowSet(RowSet&&) noexcept;
  RowSet& operator=(RowSet&&) noexcept;

  std::uint64_t size() const;
  void AddTo(RowMask& mask) const;
  std::uint64_t bytes() const;

 private:
  struct Bitmap;  // keeps the library's header, and what it defines, out of ours
  std::unique_ptr<Bitmap> bitmap_;
};

}  // namespace simile::filter

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "simile/row_mask.h"

namespace simile::filter {

// A set of rows: a plain bitmap when it has a large share of the collection, else a Roaring bitmap.
// Immutable; safe to share.
class RowSet {
 public:
  RowSet();
  //   row_count  of the collection
  // Cost: O(rows). REQUIRES: ascending, distinct.
  RowSet(std::span<const Row> rows, std::size_t row_count);
  ~RowSet();
  RowSet(RowSet&&) noexcept;
  RowSet& operator=(RowSet&&) noexcept;

  std::uint64_t size() const { return size_; }
  void AddTo(RowMask& mask) const;
  // The work of AddTo: about how many rows or words of rows it visits.
  std::uint64_t looks() const;
  // How many of its rows the mask allows. Cost: one pass over the mask.
  // REQUIRES: the mask has the collection's rows.
  std::uint64_t CountAllowed(const RowMask& mask) const;
  // The first row of the set that the mask allows.
  // REQUIRES: the mask has the collection's rows. Cost: one pass over the set.
  std::optional<Row> FirstAllowed(const RowMask& mask) const;
  std::uint64_t bytes() const;
  // Estimates the bytes() of a set of `rows` rows that are spread evenly.
  static std::uint64_t BytesFor(std::uint64_t rows, std::size_t row_count);

 private:
  struct Bitmap;                    // keeps the library's header out of this one
  std::unique_ptr<Bitmap> bitmap_;  // either this
  std::optional<RowMask> mask_;     // or that
  std::uint64_t size_ = 0;
};

}  // namespace simile::filter

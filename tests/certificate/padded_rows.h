#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "simile/matrix_view.h"

namespace simile::tests {

// A matrix [row_count, dim] with its padding, for tests. Rows start `offset` floats after the
// allocation, which reveals code that needs more alignment than it says.
class PaddedRows {
 public:
  PaddedRows(std::size_t row_count, std::size_t dim, std::size_t offset = 0)
      : offset_(offset),
        row_count_(row_count),
        dim_(dim),
        floats_(offset + row_count * PaddedDim(dim), 0.0F) {}

  MatrixView view() const { return {floats_.data() + offset_, row_count_, dim_}; }
  std::size_t row_count() const { return row_count_; }
  std::size_t dim() const { return dim_; }
  std::span<float> operator[](std::size_t index) {
    return {floats_.data() + offset_ + index * PaddedDim(dim_), dim_};
  }
  std::span<const float> operator[](std::size_t index) const { return view()[index]; }

 private:
  std::size_t offset_;
  std::size_t row_count_;
  std::size_t dim_;
  std::vector<float> floats_;
};

}  // namespace simile::tests

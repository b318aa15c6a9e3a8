#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>

#include <absl/status/statusor.h>

#include "base/memory_pages.h"
#include "simile/matrix_view.h"

namespace simile::data {

// An owned fp32 matrix [row_count, dim] whose rows are padded with +0 to whole lanes. Starts zeroed
// and aligned to 64 bytes. A matrix of 2 MiB or more comes from the kernel already zero, aligned to
// 2 MiB, with huge pages advised. So its untouched rows cost nothing, and padding needs no pass. A
// smaller matrix, such as a batch of queries, comes from the heap, because a mapping for each
// request would cost more than the search. Movable, not copyable.
class Matrix {
 public:
  // Errors: kResourceExhausted with the bytes asked for.
  static absl::StatusOr<Matrix> Create(std::size_t row_count, std::size_t dim);

  Matrix() = default;
  Matrix(Matrix&& other) noexcept
      : lines_(std::move(other.lines_)),
        pages_(std::move(other.pages_)),
        row_count_(std::exchange(other.row_count_, 0)),
        dim_(std::exchange(other.dim_, 0)) {}
  Matrix& operator=(Matrix&& other) noexcept {
    lines_ = std::move(other.lines_);
    pages_ = std::move(other.pages_);
    row_count_ = std::exchange(other.row_count_, 0);
    dim_ = std::exchange(other.dim_, 0);
    return *this;
  }

  MatrixView view() const { return {data(), row_count_, dim_}; }
  std::size_t row_count() const { return row_count_; }
  std::size_t dim() const { return dim_; }
  // The memory it takes.
  std::size_t bytes() const { return lines_ != nullptr ? view().bytes() : pages_.bytes(); }
  // The memory that a matrix of this size takes. REQUIRES: the product does not overflow.
  static std::size_t BytesFor(std::size_t row_count, std::size_t dim);

  // The padded row for writing. REQUIRES: index < row_count(); elements past dim() stay +0.
  float* MutableRow(std::size_t index) { return data() + index * PaddedDim(dim_); }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  Matrix(std::size_t row_count, std::size_t dim) : row_count_(row_count), dim_(dim) {}

  float* data() const { return lines_ != nullptr ? lines_.get() : pages_.As<float>(); }

  std::unique_ptr<float[], Free> lines_;  // of a small matrix
  base::PageBuffer pages_;                // of a large one
  std::size_t row_count_ = 0;
  std::size_t dim_ = 0;
};

}  // namespace simile::data

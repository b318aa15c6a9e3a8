#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace simile {

// A row's number in the caller's file: the first line of metadata.jsonl is row 0. Every interface
// of a segment uses these numbers, whatever order it keeps its rows in.
using Row = std::uint32_t;

// The canonical score adds 32 lanes; rows are padded with +0 to whole lanes so that no kernel has a
// tail and every instruction set sees the same numbers.
inline constexpr std::size_t kLaneCount = 32;

constexpr std::size_t PaddedDim(std::size_t dim) {
  return (dim + kLaneCount - 1) / kLaneCount * kLaneCount;
}

// Whether a vector is all zeros (-0 counts as zero), so that it has no direction.
inline bool IsZeroVector(std::span<const float> vector) {
  return std::ranges::all_of(vector, [](float value) { return value == 0; });
}

// A borrowed fp32 matrix [row_count, dim], row-major, each row followed by +0 up to padded_dim().
// Does not own its memory; a view never outlives the call it is passed to unless an owner is
// passed along with it (see SegmentRows).
class MatrixView {
 public:
  MatrixView() = default;
  // REQUIRES: data holds row_count * PaddedDim(dim) floats, the padding is +0.
  MatrixView(const float* data, std::size_t row_count, std::size_t dim)
      : data_(data), row_count_(row_count), dim_(dim) {}

  std::size_t row_count() const { return row_count_; }
  std::size_t dim() const { return dim_; }
  std::size_t padded_dim() const { return PaddedDim(dim_); }
  std::size_t bytes() const { return row_count_ * padded_dim() * sizeof(float); }
  const float* data() const { return data_; }

  // The padded row, padded_dim() floats.
  const float* PaddedRow(std::size_t index) const {
    assert(index < row_count_);
    return data_ + index * padded_dim();
  }
  // The row without its padding, dim() floats.
  std::span<const float> operator[](std::size_t index) const { return {PaddedRow(index), dim_}; }

  // Rows [first, first + count).
  MatrixView Slice(std::size_t first, std::size_t count) const {
    assert(first + count <= row_count_);
    return {data_ + first * padded_dim(), count, dim_};
  }

 private:
  const float* data_ = nullptr;
  std::size_t row_count_ = 0;
  std::size_t dim_ = 0;
};

}  // namespace simile

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "certificate/nibble_codes.h"
#include "certificate/rotation.h"
#include "certificate/score_bound.h"
#include "data/page_buffer.h"
#include "simile/matrix_view.h"

namespace simile::backend::cpu {

// How many bits hold a dimension of a row.
enum class CodeWidth { kByte, kNibble };

// How rows are cut into blocks. A block shares one scale and stays in the second-level cache while
// all queries go by; a chunk is a handful of blocks whose rows were sorted by scale together. Pure.
struct PackedShape {
  std::size_t row_count = 0;
  std::size_t rotated_dim = 0;
  std::size_t block_rows =
      0;  // a multiple of 64; the last block may be shorter, still a multiple of 64
  std::size_t chunk_blocks = 0;
  bool has_nibbles = false;  // half a byte a dimension beside the byte

  std::size_t position_count() const;  // rows with the padding of the last block
  std::size_t block_count() const { return (position_count() + block_rows - 1) / block_rows; }
  std::size_t chunk_count() const { return (block_count() + chunk_blocks - 1) / chunk_blocks; }
  // Memory of PackedRows.
  std::size_t bytes() const;
};

//   block_bytes  of codes, at least 64 rows: what the second-level cache holds beside the queries
PackedShape ShapeOf(std::size_t row_count, std::size_t dim, std::size_t block_bytes);

// Rows as the first stage reads them: shuffled, rotated, a byte a dimension, packed for Int8Kernel;
// and, if the shape says so, a second time with half a byte a dimension in the same order.
// A row's place in this order is its position; IndexAt() tells which row of the segment it is.
// Immutable once built, the same for the same rows whatever the number of threads.
class PackedRows {
 public:
  struct Block {
    float scale = 0;
    certificate::QuantizedNorms norms;  // bounds that hold for all of its rows
  };
  static constexpr std::uint32_t kNoRow =
      0xffff'ffff;  // at positions that only fill the last block

  struct Progress {
    std::atomic<std::size_t> chunks_done{0};
    std::atomic<bool> cancelled{false};  // set it to give the build up
  };

  // Builds with up to `threads` threads of its own.
  //   code_max  of the kernels that will read it
  // Returns null when cancelled. Throws std::bad_alloc.
  // Cost: reads the rows once, in random order; measured in docs/benchmarks/cpu.md.
  static std::unique_ptr<const PackedRows> Build(MatrixView rows, const PackedShape& shape,
                                                 std::int32_t code_max, unsigned threads,
                                                 Progress& progress);

  const PackedShape& shape() const { return shape_; }
  const certificate::Rotation& rotation() const { return rotation_; }
  std::int32_t code_max() const { return code_max_; }

  // REQUIRES, wherever a width is asked for: kByte, or shape().has_nibbles.
  const Block& block(CodeWidth width, std::size_t index) const {
    return (width == CodeWidth::kByte ? blocks_ : nibble_blocks_)[index];
  }
  std::size_t RowsOfBlock(std::size_t index) const;
  // As BlockScan::codes.
  const std::uint8_t* CodesOfBlock(CodeWidth width, std::size_t index) const {
    return (width == CodeWidth::kByte ? codes_ : nibbles_).As<const std::uint8_t>() +
           index * BytesOfRows(width, shape_.block_rows);
  }
  std::size_t BytesOfRows(CodeWidth width, std::size_t rows) const {
    return rows * shape_.rotated_dim / (width == CodeWidth::kByte ? 1 : 2);
  }
  // [16]  what each nibble stands for, as BlockScan::nibble_bytes.
  const std::uint8_t* nibble_bytes() const { return nibble_bytes_.data(); }
  // QuantizedNorms::residual of one row's nibbles: the rows of a block differ little in how well
  // bytes hold them, and much in how well nibbles do.
  float NibbleResidual(std::size_t position) const { return nibble_residuals_[position]; }
  std::uint32_t IndexAt(std::size_t position) const { return index_at_[position]; }

 private:
  PackedRows(const PackedShape& shape, std::size_t dim, std::int32_t code_max);
  class Builder;

  PackedShape shape_;
  certificate::Rotation rotation_;
  std::int32_t code_max_;
  data::PageBuffer codes_;
  std::vector<std::uint32_t> index_at_;  // [position]
  std::vector<Block> blocks_;

  certificate::NibbleCodes nibble_codes_;
  std::array<std::uint8_t, certificate::NibbleCodes::kCount> nibble_bytes_{};
  data::PageBuffer nibbles_;
  std::vector<Block> nibble_blocks_;
  std::vector<float> nibble_residuals_;  // [position]
};

}  // namespace simile::backend::cpu

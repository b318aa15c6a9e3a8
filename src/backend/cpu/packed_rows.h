#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "certificate/rotation.h"
#include "certificate/score_bound.h"
#include "data/page_buffer.h"
#include "simile/matrix_view.h"

namespace simile::backend::cpu {

// How rows are cut into blocks. A block shares one scale and stays in the second-level cache while
// all queries go by; a chunk is a handful of blocks whose rows were sorted by scale together. Pure.
struct PackedShape {
  std::size_t row_count = 0;
  std::size_t rotated_dim = 0;
  std::size_t block_rows =
      0;  // a multiple of 64; the last block may be shorter, still a multiple of 64
  std::size_t chunk_blocks = 0;

  std::size_t position_count() const;  // rows with the padding of the last block
  std::size_t block_count() const { return (position_count() + block_rows - 1) / block_rows; }
  std::size_t chunk_count() const { return (block_count() + chunk_blocks - 1) / chunk_blocks; }
  // Memory of PackedRows.
  std::size_t bytes() const;
};

//   block_bytes  of codes, at least 64 rows: what the second-level cache holds beside the queries
PackedShape ShapeOf(std::size_t row_count, std::size_t dim, std::size_t block_bytes);

// Rows as the first stage reads them: shuffled, rotated, a byte a dimension, packed for Int8Kernel.
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

  const Block& block(std::size_t index) const { return blocks_[index]; }
  std::size_t RowsOfBlock(std::size_t index) const;
  // [rows / 16][rotated_dim / 4][16][4]
  const std::uint8_t* CodesOfBlock(std::size_t index) const {
    return codes_.As<const std::uint8_t>() + index * shape_.block_rows * shape_.rotated_dim;
  }
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
};

}  // namespace simile::backend::cpu

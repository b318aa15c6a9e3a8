#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/cpu/int8_kernel.h"
#include "base/memory_pages.h"
#include "certificate/quantizer.h"
#include "certificate/rotation.h"
#include "certificate/score_bound.h"
#include "simile/matrix_view.h"

namespace simile::backend::cpu {

// How many bits hold a dimension of a row.
enum class CodeWidth { kByte, kInt4 };

// How rows are divided into blocks and chunks. The rows of a block share one scale, and the block's
// codes stay in the second-level cache while they are scanned for all queries. A chunk is up to
// eight blocks whose rows were sorted by scale together. Pure.
struct PackedShape {
  std::size_t row_count = 0;
  std::size_t rotated_dim = 0;
  std::size_t block_rows = 0;  // a multiple of 64, even in a shorter last block
  std::size_t chunk_blocks = 0;
  bool has_int4 = false;  // half a byte a dimension in addition to the byte

  std::size_t position_count() const;  // rows with the padding of the last block
  std::size_t block_count() const { return (position_count() + block_rows - 1) / block_rows; }
  std::size_t chunk_count() const { return (block_count() + chunk_blocks - 1) / chunk_blocks; }
  // The memory that PackedRows takes.
  std::size_t bytes() const;
};

//   block_bytes  of codes, at least 64 rows: the part of the second-level cache that queries leave
PackedShape ChooseShape(std::size_t row_count, std::size_t dim, std::size_t block_bytes);

// Rows as the first stage reads them: shuffled, rotated, quantized to a byte a dimension, packed
// for Int8Kernel; if the shape has int4, a second time with half a byte a dimension, in the same
// order. A row's place in this order is its position; IndexAt() returns the segment's row at a
// position. Immutable once built; independent of the number of threads.
class PackedRows {
 public:
  struct Block {
    float scale = 0;
    certificate::QuantizedNorms norms;  // bounds that hold for all rows of the block
  };
  static constexpr std::uint32_t kNoRow = 0xffff'ffff;  // at positions of padding in the last block

  struct Progress {
    std::atomic<std::size_t> chunks_done{0};
    std::atomic<bool> cancelled{false};  // set it to cancel the build
  };

  // The bytes that Build takes with this many threads, in addition to its result.
  static std::size_t BuildBytes(const PackedShape& shape, unsigned threads);
  // Builds with up to `threads` threads of its own.
  // Returns null when cancelled. Throws std::bad_alloc.
  // Cost: reads the rows once, in random order; measured in docs/benchmarks/cpu.md.
  static std::unique_ptr<const PackedRows> Build(MatrixView rows, const PackedShape& shape,
                                                 unsigned threads, Progress& progress);

  const PackedShape& shape() const { return shape_; }
  const certificate::Rotation& rotation() const { return rotation_; }

  // REQUIRES for every width parameter: kByte, or shape().has_int4.
  const Block& block(CodeWidth width, std::size_t index) const {
    return (width == CodeWidth::kByte ? blocks_ : int4_blocks_)[index];
  }
  std::size_t RowsOfBlock(std::size_t index) const;
  // As BlockScan::codes.
  const std::uint8_t* CodesOfBlock(CodeWidth width, std::size_t index) const {
    return (width == CodeWidth::kByte ? codes_ : int4_).As<const std::uint8_t>() +
           index * BytesOfRows(width, shape_.block_rows);
  }
  std::size_t BytesOfRows(CodeWidth width, std::size_t rows) const {
    return rows * shape_.rotated_dim / (width == CodeWidth::kByte ? 1 : 2);
  }
  // [16]  the row byte of each int4 code, as BlockScan::int4_bytes.
  const std::uint8_t* int4_bytes() const { return int4_bytes_.data(); }
  // QuantizedNorms::residual of one row in int4. Kept for each row, because int4 residuals differ
  // much within a block; residuals of bytes differ little.
  float Int4Residual(std::size_t position) const { return int4_residuals_[position]; }
  std::uint32_t IndexAt(std::size_t position) const { return index_at_[position]; }

 private:
  PackedRows(const PackedShape& shape, std::size_t dim);
  class Builder;

  PackedShape shape_;
  certificate::Rotation rotation_;
  base::PageBuffer codes_;
  std::vector<std::uint32_t> index_at_;  // [position]
  std::vector<Block> blocks_;

  certificate::Int4Codes int4_codes_;
  std::array<std::uint8_t, certificate::Int4Codes::kCount> int4_bytes_{};
  base::PageBuffer int4_;
  std::vector<Block> int4_blocks_;
  std::vector<float> int4_residuals_;  // [position]
};

// The queries of a pass as the first stage reads them: rotated, a byte a dimension, in tiles of
// sixteen. Passes reuse it; it only grows.
class PackedQueries {
 public:
  // The numbers of a query that the first stage needs.
  struct Query {
    certificate::QuantizedNorms norms;
    double scale = 0;           // of its codes
    double steps_per_unit = 0;  // 1 / scale
    double offset = 0;          // the bias of row bytes adds this to each sum
  };
  // One thread's buffers to pack a query with; they only grow.
  struct Scratch {
    std::vector<float> rotated;
    std::vector<float> spare;
    std::vector<std::int8_t> codes;
  };

  // Allocates for query_count queries against these rows. Throws std::bad_alloc.
  //   four_columns_max  of the kernel that will read the queries
  void Reset(const PackedRows& rows, std::int32_t four_columns_max, std::size_t query_count);
  // Allocates the scratch for packing. Throws std::bad_alloc.
  static void Reserve(const PackedRows& rows, Scratch& scratch);
  // Packs one query. Different threads may pack different queries.
  //   values  [padded_dim]
  void Pack(const PackedRows& rows, std::size_t index, const float* values, std::size_t padded_dim,
            Scratch& scratch);

  const Query& query(std::size_t index) const { return queries_[index]; }
  // BlockScan::queries from this query on: [tile][rotated_dim / 64][16][64].
  const std::int8_t* codes(std::size_t first_query) const {
    return codes_.As<const std::int8_t>() + CodesAt(first_query);
  }

 private:
  std::size_t CodesAt(std::size_t query) const {
    return query / kTileQueries * kTileQueries * rotated_dim_ +
           query % kTileQueries * certificate::kCodeStep;
  }

  std::size_t rotated_dim_ = 0;
  std::int32_t four_columns_max_ = 0;
  std::vector<Query> queries_;
  base::PageBuffer codes_;
};

}  // namespace simile::backend::cpu

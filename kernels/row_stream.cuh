#pragma once

#include "kernels/device.h"
#include "kernels/row_scan.h"

// How row_scan's warps walk over the tiles and load rows for the products.

namespace simile::kernels {

inline constexpr unsigned kChunk = 64;  // columns of a stage: one 128-byte line of a row
inline constexpr unsigned kSlotBytes = kScanTileRows * kChunk * 2;

// The row of eight that lane group g loads as column g of a product. Groups 2i and 2i + 1, which
// share a quarter of a load, get rows that differ in bit 2, so that the swizzled quarter covers all
// 32 banks. The two results of a lane, columns 2t and 2t + 1, are then rows t and t + 4.
__device__ __forceinline__ unsigned RowOfGroup(unsigned group) {
  return group >> 1 | (group & 1U) << 2;
}

// The tiles of one warp: those of the sample, then those of all rows. Neighbouring tiles go to
// different blocks, so that multiprocessors differ by at most one tile per warp.
struct TileWalk {
  enum Phase : unsigned { kSample, kRows, kDone };

  unsigned phase, tile;
  unsigned first, step;
  unsigned sample_tiles, row_tiles;

  __device__ __forceinline__ void Settle() {
    if (phase == kSample && tile >= sample_tiles) {
      phase = kRows;
      tile = first;
    }
    if (phase == kRows && tile >= row_tiles) phase = kDone;
  }
  // Whether the phase changed.
  __device__ __forceinline__ bool Advance() {
    const unsigned before = phase;
    tile += step;
    Settle();
    return phase != before;
  }
};

// The addresses of the next stage: 32 rows, one chunk of each.
class StageSource {
 public:
  //   row, column  the lane's first row in a tile and its first column in a chunk
  __device__ __forceinline__ StageSource(const Pass& pass, const __half* fp16_rows,
                                         const TileWalk& walk, unsigned row, unsigned column)
      : fp16_rows_(fp16_rows),
        first_(fp16_rows +
               (static_cast<std::size_t>(walk.first) * kScanTileRows + row) * pass.stride + column),
        next_(first_),
        walk_(walk),
        row_(row),
        column_(column),
        row_count_(pass.row_count),
        stride_(pass.stride) {}

  __device__ __forceinline__ bool done() const { return walk_.phase == TileWalk::kDone; }
  // Whether the stage lies entirely within the rows and columns.
  __device__ __forceinline__ bool whole() const {
    return (walk_.tile + 1) * kScanTileRows <= row_count_ && (chunk_ + 1) * kChunk <= stride_;
  }
  __device__ __forceinline__ bool Has(unsigned rows_on, unsigned columns_on) const {
    return walk_.tile * kScanTileRows + row_ + rows_on < row_count_ &&
           chunk_ * kChunk + column_ + columns_on < stride_;
  }
  __device__ __forceinline__ const __half* At(unsigned rows_on, unsigned columns_on) const {
    return next_ + chunk_ * kChunk + static_cast<std::size_t>(rows_on) * stride_ + columns_on;
  }
  __device__ __forceinline__ const __half* anywhere() const { return fp16_rows_; }
  __device__ __forceinline__ void Advance() {
    if (++chunk_ * kChunk < stride_) return;
    chunk_ = 0;
    next_ += static_cast<std::size_t>(stride_) * kScanTileRows * walk_.step;
    if (walk_.Advance()) next_ = first_;
  }

 private:
  const __half* const fp16_rows_;
  const __half* const first_;
  const __half* next_;
  TileWalk walk_;
  const unsigned row_, column_;
  const unsigned row_count_, stride_;
  unsigned chunk_ = 0;
};

// A warp's ring of stages in shared memory. A slot holds 32 rows of 128 bytes whose 16-byte chunks
// are swizzled (chunk ^ row % 8), as Hopper's bulk copies (TMA) do it.
template <unsigned kStages>
class RowRing {
 public:
  __device__ __forceinline__ RowRing(const Pass& pass, const __half* fp16_rows,
                                     const TileWalk& walk, unsigned char* slots, unsigned lane)
      : source_(pass, fp16_rows, walk, lane / 8, lane % 8 * 8),
        slots_(slots),
        in_(slots),
        out_(slots) {
    const unsigned row = lane / 8, column = lane % 8;
    to_low_ = row * 128 + (column ^ row) * 16;
    const unsigned group = lane / 4, quad = lane % 4, fed = RowOfGroup(group);
    offset_ = fed * 128 + (quad ^ fed) * 16;
#pragma unroll 1
    for (unsigned i = 0; i + 1 < kStages; ++i) Issue();
  }

  // Makes the next stage loadable and starts a copy into the slot of the previous one.
  __device__ __forceinline__ void Next() {
    AsyncCopyWait<static_cast<int>(kStages) - 2>();
    __syncwarp();  // the stage is complete for all lanes, and none reads the slot to be filled
    Issue();
    current_ = out_;
    out_ = After(out_);
  }
  // 16 bytes of the lane group's row in the given eighth of the tile: from column quad * 8 of the
  // first or second half of the chunk.
  __device__ __forceinline__ uint4 Load(unsigned half, unsigned eighth) const {
    return *reinterpret_cast<const uint4*>(current_ + (offset_ ^ half * 64) + eighth * 1024);
  }

 private:
  __device__ __forceinline__ unsigned char* After(unsigned char* slot) const {
    return slot + kSlotBytes == slots_ + kStages * kSlotBytes ? slots_ : slot + kSlotBytes;
  }
  // A quarter of the warp copies one line; rows 0 to 3 and 4 to 7 of eight swizzle differently.
  __device__ __forceinline__ void Issue() {
    if (!source_.done()) {
      const unsigned to_high = (to_low_ ^ 64) + 512;
      if (source_.whole()) {
#pragma unroll
        for (unsigned i = 0; i < kScanTileRows / 4; ++i) {
          AsyncCopy16(in_ + ((i & 1U) != 0 ? to_high : to_low_) + i / 2 * 1024,
                      source_.At(i * 4, 0), true);
        }
      } else {
#pragma unroll 1
        for (unsigned i = 0; i < kScanTileRows / 4; ++i) {
          const bool there = source_.Has(i * 4, 0);
          AsyncCopy16(in_ + ((i & 1U) != 0 ? to_high : to_low_) + i / 2 * 1024,
                      there ? source_.At(i * 4, 0) : source_.anywhere(), there);
        }
      }
      source_.Advance();
      in_ = After(in_);
    }
    AsyncCopyCommit();  // also an empty group: AsyncCopyWait counts groups
  }

  StageSource source_;
  unsigned char* const slots_;
  unsigned char *in_, *out_;
  const unsigned char* current_ = nullptr;
  unsigned to_low_, offset_;
};

// No ring: every lane loads its own fragments one stage ahead into registers. For cards without
// background copies, and for queries that fill shared memory.
class RowRegisters {
 public:
  __device__ __forceinline__ RowRegisters(const Pass& pass, const __half* fp16_rows,
                                          const TileWalk& walk, unsigned char* /*slots*/,
                                          unsigned lane)
      : source_(pass, fp16_rows, walk, RowOfGroup(lane / 4), lane % 4 * 8) {
    Issue();
  }

  __device__ __forceinline__ void Next() {
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) current_[i] = ahead_[i];
    Issue();
  }
  __device__ __forceinline__ uint4 Load(unsigned half, unsigned eighth) const {
    return current_[half * 4 + eighth];
  }

 private:
  __device__ __forceinline__ void Issue() {
    if (source_.done()) return;
    const bool whole = source_.whole();
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned rows_on = i % 4 * 8, columns_on = i / 4 * 32;
      ahead_[i] = whole || source_.Has(rows_on, columns_on)
                      ? LoadStream16(source_.At(rows_on, columns_on))
                      : make_uint4(0, 0, 0, 0);
    }
    source_.Advance();
  }

  StageSource source_;
  uint4 ahead_[8], current_[8];
};

}  // namespace simile::kernels

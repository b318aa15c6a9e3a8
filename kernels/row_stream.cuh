#pragma once

#include "kernels/device.h"
#include "kernels/row_scan.h"

// How the warps of row_scan and int8_scan walk over the tiles and load rows for the products.

namespace simile::kernels {

inline constexpr unsigned kChunk = 64;  // columns of a stage: one 128-byte line of a row
inline constexpr unsigned kSlotBytes = kScanTileRows * kChunk * 2;

// The row, of eight, that the four lanes of group g load for column g of a product. A quarter of a
// load, eight lanes, serves groups 2i and 2i + 1: the swizzle puts one of their rows, i and i + 4,
// into banks 0 to 15 and the other into 16 to 31, so no two lanes use the same bank. The product
// then leaves rows t and t + 4, as columns 2t and 2t + 1, in lane t of a group.
__device__ __forceinline__ unsigned RowOfGroup(unsigned group) {
  return group >> 1 | (group & 1U) << 2;
}

// The tiles of one warp: the tiles of the sample, then the tiles of all rows. The first tiles of
// all rows may set a second gate. Neighbouring tiles go to different blocks, so that
// multiprocessors differ by at most one tile per warp.
struct TileWalk {
  enum Phase : unsigned { kSample, kFirst, kRows, kDone };

  unsigned phase, tile;
  unsigned first, step;
  unsigned sample_tiles, second_tiles, row_tiles;

  __device__ __forceinline__ void Settle() {
    if (phase == kSample && tile >= sample_tiles) {
      phase = kFirst;
      tile = first;
    }
    if (phase == kFirst && tile >= second_tiles) phase = kRows;
    if (phase == kRows && tile >= row_tiles) phase = kDone;
  }
  // Goes to the next tile. Returns whether the walk begins again with the first tile.
  __device__ __forceinline__ bool Advance() {
    const bool was_sample = phase == kSample;
    tile += step;
    Settle();
    return was_sample && phase != kSample;
  }
};

// The rows that a scan reads: fp16 rows, or int8 rows as pairs of bytes.
struct ScannedRows {
  const __half* rows;
  unsigned row_count;
  unsigned stride;  // a multiple of 32
};

// The addresses of the next stage: 32 rows, one chunk of each.
class StageSource {
 public:
  //   row, column  the lane's first row in a tile and its first column in a chunk
  __device__ __forceinline__ StageSource(const ScannedRows& rows, const TileWalk& walk,
                                         unsigned row, unsigned column)
      : rows_(rows.rows),
        walk_(walk),
        row_(row),
        column_(column),
        row_count_(rows.row_count),
        stride_(rows.stride) {
    next_ = First();
  }

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
  __device__ __forceinline__ const __half* anywhere() const { return rows_; }
  __device__ __forceinline__ void Advance() {
    if (++chunk_ * kChunk < stride_) return;
    chunk_ = 0;
    next_ += static_cast<std::size_t>(stride_) * kScanTileRows * walk_.step;
    if (walk_.Advance()) next_ = First();
  }

 private:
  // The address where a phase begins. Computed each time, because clang's code for 64 queries has
  // no register for it.
  __device__ __forceinline__ const __half* First() const {
    return rows_ + (static_cast<std::size_t>(walk_.first) * kScanTileRows + row_) * stride_ +
           column_;
  }

  const __half* const rows_;
  const __half* next_ = nullptr;
  TileWalk walk_;
  const unsigned row_, column_;
  const unsigned row_count_, stride_;
  unsigned chunk_ = 0;
};

// Offsets in a slot in shared memory: of a lane's first copy, and of its loads.
__device__ __forceinline__ unsigned CopyOffset(unsigned lane) {
  const unsigned row = lane / 8, column = lane % 8;
  return row * 128 + (column ^ row) * 16;
}
__device__ __forceinline__ unsigned LoadOffset(unsigned lane) {
  const unsigned quad = lane % 4, fed = RowOfGroup(lane / 4);
  return fed * 128 + (quad ^ fed) * 16;
}
// A quarter of the warp copies one line of a row; rows 0 to 3 and 4 to 7 of eight swizzle
// differently.
//   i  index of the eighth of the tile, four rows
__device__ __forceinline__ void CopyRows(const StageSource& source, unsigned i, unsigned char* slot,
                                         unsigned to_low, bool there) {
  const unsigned to_high = (to_low ^ 64) + 512;
  AsyncCopy16(slot + ((i & 1U) != 0 ? to_high : to_low) + i / 2 * 1024,
              there ? source.At(i * 4, 0) : source.anywhere(), there);
}

// A warp's ring of stages in shared memory. A slot holds 32 rows of 128 bytes. Their 16-byte chunks
// are swizzled (chunk ^ row % 8), as by Hopper's bulk copies (TMA).
template <unsigned kStages>
class RowRing {
 public:
  static constexpr unsigned kBytes = kStages * kSlotBytes;  // of a warp

  __device__ __forceinline__ RowRing(const ScannedRows& rows, const TileWalk& walk,
                                     unsigned char* slots, unsigned lane)
      : source_(rows, walk, lane / 8, lane % 8 * 8),
        slots_(static_cast<unsigned>(slots - DynamicShared())),
        to_low_(CopyOffset(lane)),
        offset_(LoadOffset(lane)) {
#pragma unroll 1
    for (unsigned i = 0; i + 1 < kStages; ++i) Issue(i * kSlotBytes);
  }

  // Makes the next stage loadable and starts a copy into the slot of the previous one.
  __device__ __forceinline__ void Next() {
    AsyncCopyWait<static_cast<int>(kStages) - 2>();
    __syncwarp();  // the stage is complete for all lanes, and none reads the slot to be filled
    Issue(current_);
    current_ = After(current_);
  }
  // 16 bytes of the lane group's row in the given eighth of the tile: from column quad * 8 of the
  // first or second half of the chunk.
  __device__ __forceinline__ uint4 Load(unsigned half, unsigned eighth) const {
    return *reinterpret_cast<const uint4*>(DynamicShared() + slots_ + current_ +
                                           (offset_ ^ half * 64) + eighth * 1024);
  }

 private:
  __device__ __forceinline__ static unsigned After(unsigned stage) {
    return stage + kSlotBytes == kBytes ? 0 : stage + kSlotBytes;
  }
  __device__ __forceinline__ void Issue(unsigned stage) {
    if (!source_.done()) {
      if (source_.whole()) {
// clang has no registers for more at 64 queries on sm_86 and sm_89.
#if defined(__clang__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890)
#pragma unroll 2
#else
#pragma unroll
#endif
        for (unsigned i = 0; i < kScanTileRows / 4; ++i)
          CopyRows(source_, i, DynamicShared() + slots_ + stage, to_low_, true);
      } else {
#pragma unroll 1
        for (unsigned i = 0; i < kScanTileRows / 4; ++i) {
          CopyRows(source_, i, DynamicShared() + slots_ + stage, to_low_, source_.Has(i * 4, 0));
        }
      }
      source_.Advance();
    }
    AsyncCopyCommit();  // also an empty group: AsyncCopyWait counts groups
  }

  StageSource source_;
  const unsigned slots_;  // bytes from the block's shared memory
  // Offset in bytes from slots_ of the stage that is loaded now. Initially the last stage, which is
  // filled next. A single place, because clang's code for 64 queries has no register for a second
  // one.
  unsigned current_ = kBytes - kSlotBytes;
  const unsigned to_low_, offset_;
};

// Rows without a ring: every lane loads its own fragments one stage ahead into registers. For cards
// without background copies, and for queries that fill shared memory.
class RowRegisters {
 public:
  static constexpr unsigned kBytes = 0;

  __device__ __forceinline__ RowRegisters(const ScannedRows& rows, const TileWalk& walk,
                                          unsigned char* /*slots*/, unsigned lane)
      : source_(rows, walk, RowOfGroup(lane / 4), lane % 4 * 8) {
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

// For AArch64, whose every processor has NEON: no flags of its own. Read the warning in
// canonical_kernels.h before including anything.
#include <arm_neon.h>

#include "certificate/canonical_kernels.h"
#include "certificate/tile_walk.h"

namespace simile::certificate {
namespace {

// The 32 lanes of one (row, query) pair are eight registers of four.
constexpr std::size_t kRegisterLanes = 4;
constexpr std::size_t kRegisters = 8;

// Lane sums of the four rows of a tile against one query: lanes[register][row].
struct TileLanes {
  float32x4_t sums[kRegisters][kTileRows];
};

// Adds lanes 16, 8, 4, 2 and 1 apart, for four rows, to their four scores. Each row's additions are
// the canonical ones; the shuffles only bring the rows side by side.
inline float32x4_t AddLanes(const TileLanes& lanes) {
  float32x4_t four[kTileRows];
#pragma GCC unroll 4
  for (std::size_t row = 0; row < kTileRows; ++row) {
    float32x4_t eight[2];
#pragma GCC unroll 2
    for (std::size_t part = 0; part < 2; ++part) {
      const float32x4_t low = vaddq_f32(lanes.sums[part][row], lanes.sums[part + 4][row]);
      const float32x4_t high = vaddq_f32(lanes.sums[part + 2][row], lanes.sums[part + 6][row]);
      eight[part] = vaddq_f32(low, high);  // sums l + l+16, those 8 apart
    }
    four[row] = vaddq_f32(eight[0], eight[1]);  // l + l+4
  }
  // l + l+2: both lanes of rows 0 and 1 in one register, of 2 and 3 in another.
  const float32x4_t two_01 =
      vaddq_f32(vcombine_f32(vget_low_f32(four[0]), vget_low_f32(four[1])),
                vcombine_f32(vget_high_f32(four[0]), vget_high_f32(four[1])));
  const float32x4_t two_23 =
      vaddq_f32(vcombine_f32(vget_low_f32(four[2]), vget_low_f32(four[3])),
                vcombine_f32(vget_high_f32(four[2]), vget_high_f32(four[3])));
  // l + l+1: even lanes plus odd ones, one value a row in the order of the rows.
  const float32x4_t one = vaddq_f32(vuzp1q_f32(two_01, two_23), vuzp2q_f32(two_01, two_23));
  // Adding +0 turns -0 into +0 and changes nothing else (RankedScore).
  return vaddq_f32(one, vdupq_n_f32(0));
}

inline void StoreFirst(float32x4_t four, std::size_t count, float* scores) {
  if (count == kTileRows) return vst1q_f32(scores, four);
  float all[kTileRows];
  vst1q_f32(all, four);
  for (std::size_t i = 0; i < count; ++i) scores[i] = all[i];
}

// Loops over registers are unrolled with pragmas, because GCC 12 otherwise keeps the sums in
// memory.
struct NeonTiles {
  // All lanes of three rows: 24 of the 32 registers are accumulators.
  static void Stream(const float* rows, std::size_t stride, const float* query,
                     std::size_t padded_dim, float* scores) {
    float32x4_t sums[kStreams][kRegisters];
    for (auto& row : sums) {
      for (float32x4_t& sum : row) sum = vdupq_n_f32(0);
    }
    for (std::size_t i = 0; i < padded_dim; i += kRegisters * kRegisterLanes) {
#pragma GCC unroll 8
      for (std::size_t part = 0; part < kRegisters; ++part) {
        const std::size_t column = i + part * kRegisterLanes;
        const float32x4_t q = vld1q_f32(query + column);
#pragma GCC unroll 3
        for (std::size_t row = 0; row < kStreams; ++row) {
          sums[row][part] = vfmaq_f32(sums[row][part], vld1q_f32(rows + row * stride + column), q);
        }
      }
    }
    TileLanes lanes{};
#pragma GCC unroll 8
    for (std::size_t part = 0; part < kRegisters; ++part) {
#pragma GCC unroll 3
      for (std::size_t row = 0; row < kStreams; ++row) lanes.sums[part][row] = sums[row][part];
    }
    StoreFirst(AddLanes(lanes), kStreams, scores);
  }

  // Lanes are independent until the end, so each pass over the whole dimension takes the lanes of a
  // few registers: as many lanes as keep at most 24 accumulators. The other eight registers hold
  // loaded operands.
  template <std::size_t kQueries>
  static void Score(const RowTile& tile, const float* queries, std::size_t padded_dim,
                    float* scores, std::size_t row_count) {
    constexpr std::size_t kTogether = kQueries == 1 ? 4 : 2;
    static_assert(kTogether * kQueries * kTileRows <= 24);
    TileLanes lanes[kQueries];
    for (std::size_t first = 0; first < kRegisters; first += kTogether) {
      float32x4_t sums[kTogether][kTileRows][kQueries];
      for (auto& part : sums) {
        for (auto& row : part) {
          for (float32x4_t& sum : row) sum = vdupq_n_f32(0);
        }
      }
      for (std::size_t i = 0; i < padded_dim; i += kRegisters * kRegisterLanes) {
#pragma GCC unroll 4
        for (std::size_t part = 0; part < kTogether; ++part) {
          const std::size_t column = i + (first + part) * kRegisterLanes;
          float32x4_t query[kQueries];
#pragma GCC unroll 3
          for (std::size_t q = 0; q < kQueries; ++q) {
            query[q] = vld1q_f32(queries + q * padded_dim + column);
          }
#pragma GCC unroll 4
          for (std::size_t row = 0; row < kTileRows; ++row) {
            const float32x4_t x = vld1q_f32(tile.rows[row] + column);
#pragma GCC unroll 3
            for (std::size_t q = 0; q < kQueries; ++q) {
              sums[part][row][q] = vfmaq_f32(sums[part][row][q], x, query[q]);
            }
          }
        }
      }
#pragma GCC unroll 4
      for (std::size_t part = 0; part < kTogether; ++part) {
#pragma GCC unroll 4
        for (std::size_t row = 0; row < kTileRows; ++row) {
#pragma GCC unroll 3
          for (std::size_t q = 0; q < kQueries; ++q) {
            lanes[q].sums[first + part][row] = sums[part][row][q];
          }
        }
      }
    }
#pragma GCC unroll 3
    for (std::size_t q = 0; q < kQueries; ++q) {
      StoreFirst(AddLanes(lanes[q]), tile.count, scores + q * row_count);
    }
  }
};

}  // namespace

void ScoreBlockNeon(const float* rows, std::size_t row_count, const float* queries,
                    std::size_t query_count, std::size_t padded_dim, float* scores) {
  TileWalk<NeonTiles>::Block(rows, row_count, queries, query_count, padded_dim, scores);
}

void ScoreScatteredNeon(const float* const* rows, std::size_t row_count, const float* query,
                        std::size_t padded_dim, float* scores) {
  TileWalk<NeonTiles>::Scattered(rows, row_count, query, padded_dim, scores);
}

}  // namespace simile::certificate

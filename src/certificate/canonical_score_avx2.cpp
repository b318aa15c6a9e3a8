// Compiled with -mavx2 -mfma. Read the warning in canonical_kernels.h before including anything.
#include <immintrin.h>

#include "certificate/canonical_kernels.h"
#include "certificate/row_sums.h"
#include "certificate/tile_walk.h"

namespace simile::certificate {
namespace {

// The 32 lanes of one (row, query) pair are four registers of eight.
constexpr std::size_t kRegisterLanes = 8;
constexpr std::size_t kRegisters = 4;

// Lane sums of the four rows of a tile against one query: lanes[register][row].
struct TileLanes {
  __m256 sums[kRegisters][kTileRows];
};

// Adds lanes 16, 8, 4, 2 and 1 apart, for four rows, to their four scores.
inline __m128 AddLanes(const TileLanes& lanes) {
  __m256 eight[kTileRows];
  for (std::size_t row = 0; row < kTileRows; ++row) {
    const __m256 low = _mm256_add_ps(lanes.sums[0][row], lanes.sums[2][row]);   // l + l+16, l < 8
    const __m256 high = _mm256_add_ps(lanes.sums[1][row], lanes.sums[3][row]);  // l + l+16, l >= 8
    eight[row] = _mm256_add_ps(low, high);                                      // l + l+8
  }
  return AddEight(eight);
}

struct Avx2Tiles {
  // All lanes of three rows: twelve accumulators, enough independent chains to keep up with memory.
  static void Stream(const float* rows, std::size_t stride, const float* query,
                     std::size_t padded_dim, float* scores) {
    __m256 sums[kStreams][kRegisters];
    for (auto& row : sums) {
      for (__m256& sum : row) sum = _mm256_setzero_ps();
    }
    for (std::size_t i = 0; i < padded_dim; i += kRegisters * kRegisterLanes) {
      for (std::size_t row = 0; row < kStreams; ++row) {
        const float* x = rows + row * stride + i;
        for (std::size_t part = 0; part < kRegisters; ++part) {
          const std::size_t lane = part * kRegisterLanes;
          sums[row][part] = _mm256_fmadd_ps(_mm256_loadu_ps(x + lane),
                                            _mm256_loadu_ps(query + i + lane), sums[row][part]);
        }
      }
    }
    TileLanes lanes{};
    for (std::size_t part = 0; part < kRegisters; ++part) {
      for (std::size_t row = 0; row < kStreams; ++row) lanes.sums[part][row] = sums[row][part];
    }
    StoreFirst(AddLanes(lanes), kStreams, scores);
  }

  // Lanes are independent until the end, so there is one pass over the whole dimension for each
  // register of eight lanes. A pass has 4 x 3 accumulators and 7 loads for 12 multiply-adds. With
  // all lanes at once only 3 pairs would fit, with more loads than multiply-adds. The rows are in
  // the first-level cache, where four passes over them cost little.
  template <std::size_t kQueries>
  static void Score(const RowTile& tile, const float* queries, std::size_t padded_dim,
                    float* scores, std::size_t row_count) {
    TileLanes lanes[kQueries];
    for (std::size_t part = 0; part < kRegisters; ++part) {
      __m256 sums[kTileRows][kQueries];
      for (auto& row : sums) {
        for (__m256& sum : row) sum = _mm256_setzero_ps();
      }
      for (std::size_t i = part * kRegisterLanes; i < padded_dim;
           i += kRegisters * kRegisterLanes) {
        __m256 query[kQueries];
        for (std::size_t q = 0; q < kQueries; ++q) {
          query[q] = _mm256_loadu_ps(queries + q * padded_dim + i);
        }
        for (std::size_t row = 0; row < kTileRows; ++row) {
          const __m256 x = _mm256_loadu_ps(tile.rows[row] + i);
          for (std::size_t q = 0; q < kQueries; ++q) {
            sums[row][q] = _mm256_fmadd_ps(x, query[q], sums[row][q]);
          }
        }
      }
      for (std::size_t row = 0; row < kTileRows; ++row) {
        for (std::size_t q = 0; q < kQueries; ++q) lanes[q].sums[part][row] = sums[row][q];
      }
    }
    for (std::size_t q = 0; q < kQueries; ++q) {
      StoreFirst(AddLanes(lanes[q]), tile.count, scores + q * row_count);
    }
  }
};

}  // namespace

void ScoreBlockAvx2(const float* rows, std::size_t row_count, const float* queries,
                    std::size_t query_count, std::size_t padded_dim, float* scores) {
  TileWalk<Avx2Tiles>::Block(rows, row_count, queries, query_count, padded_dim, scores);
}

void ScoreScatteredAvx2(const float* const* rows, std::size_t row_count, const float* query,
                        std::size_t padded_dim, float* scores) {
  TileWalk<Avx2Tiles>::Scattered(rows, row_count, query, padded_dim, scores);
}

}  // namespace simile::certificate

// Compiled with -mavx512f -mfma. Read the warning in canonical_kernels.h before including anything.
#include <immintrin.h>

#include "certificate/canonical_kernels.h"
#include "certificate/row_sums.h"
#include "certificate/tile_walk.h"

namespace simile::certificate {
namespace {

// The 32 lanes of one (row, query) pair are two registers of sixteen.
constexpr std::size_t kRegisterLanes = 16;

// Lane sums of the four rows of a tile against one query, after the first addition: l + l+16. They
// are stored to memory so that each eight lanes of a wide register can be loaded by themselves.
struct TileLanes {
  alignas(64) float sums[kTileRows][kRegisterLanes];
};

// Adds lanes 8, 4, 2 and 1 apart, for four rows, to their four scores. _mm512_reduce_add_ps would
// be shorter, but its order is unspecified.
inline __m128 AddLanes(const TileLanes& lanes) {
  __m256 eight[kTileRows];
  for (std::size_t row = 0; row < kTileRows; ++row) {
    eight[row] = _mm256_add_ps(_mm256_load_ps(lanes.sums[row]),  // l + l+8
                               _mm256_load_ps(lanes.sums[row] + 8));
  }
  return AddEight(eight);
}

struct Avx512Tiles {
  static void Stream(const float* rows, std::size_t stride, const float* query,
                     std::size_t padded_dim, float* scores) {
    __m512 low[kStreams];
    __m512 high[kStreams];
    for (std::size_t row = 0; row < kStreams; ++row) {
      low[row] = _mm512_setzero_ps();
      high[row] = _mm512_setzero_ps();
    }
    for (std::size_t i = 0; i < padded_dim; i += 2 * kRegisterLanes) {
      const __m512 query_low = _mm512_loadu_ps(query + i);
      const __m512 query_high = _mm512_loadu_ps(query + i + kRegisterLanes);
      for (std::size_t row = 0; row < kStreams; ++row) {
        const float* x = rows + row * stride + i;
        _mm_prefetch(reinterpret_cast<const char*>(x + kPrefetchFloats), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(x + kPrefetchFloats + kRegisterLanes),
                     _MM_HINT_T0);
        low[row] = _mm512_fmadd_ps(_mm512_loadu_ps(x), query_low, low[row]);
        high[row] = _mm512_fmadd_ps(_mm512_loadu_ps(x + kRegisterLanes), query_high, high[row]);
      }
    }
    TileLanes lanes{};
    for (std::size_t row = 0; row < kStreams; ++row) {
      _mm512_store_ps(lanes.sums[row], _mm512_add_ps(low[row], high[row]));
    }
    StoreFirst(AddLanes(lanes), kStreams, scores);
  }

  // 4 x 3 pairs of two registers: 24 of 32 hold sums, and 14 loads feed 24 multiply-adds.
  template <std::size_t kQueries>
  static void Score(const RowTile& tile, const float* queries, std::size_t padded_dim,
                    float* scores, std::size_t row_count) {
    __m512 low[kTileRows][kQueries];
    __m512 high[kTileRows][kQueries];
    for (std::size_t row = 0; row < kTileRows; ++row) {
      for (std::size_t q = 0; q < kQueries; ++q) {
        low[row][q] = _mm512_setzero_ps();
        high[row][q] = _mm512_setzero_ps();
      }
    }
    for (std::size_t i = 0; i < padded_dim; i += 2 * kRegisterLanes) {
      __m512 query_low[kQueries];
      __m512 query_high[kQueries];
      for (std::size_t q = 0; q < kQueries; ++q) {
        query_low[q] = _mm512_loadu_ps(queries + q * padded_dim + i);
        query_high[q] = _mm512_loadu_ps(queries + q * padded_dim + i + kRegisterLanes);
      }
      for (std::size_t row = 0; row < kTileRows; ++row) {
        const __m512 x_low = _mm512_loadu_ps(tile.rows[row] + i);
        const __m512 x_high = _mm512_loadu_ps(tile.rows[row] + i + kRegisterLanes);
        for (std::size_t q = 0; q < kQueries; ++q) {
          low[row][q] = _mm512_fmadd_ps(x_low, query_low[q], low[row][q]);
          high[row][q] = _mm512_fmadd_ps(x_high, query_high[q], high[row][q]);
        }
      }
    }
    for (std::size_t q = 0; q < kQueries; ++q) {
      TileLanes lanes;
      for (std::size_t row = 0; row < kTileRows; ++row) {
        _mm512_store_ps(lanes.sums[row], _mm512_add_ps(low[row][q], high[row][q]));
      }
      StoreFirst(AddLanes(lanes), tile.count, scores + q * row_count);
    }
  }
};

}  // namespace

void ScoreBlockAvx512(const float* rows, std::size_t row_count, const float* queries,
                      std::size_t query_count, std::size_t padded_dim, float* scores) {
  TileWalk<Avx512Tiles>::Block(rows, row_count, queries, query_count, padded_dim, scores);
}

void ScoreScatteredAvx512(const float* const* rows, std::size_t row_count, const float* query,
                          std::size_t padded_dim, float* scores) {
  TileWalk<Avx512Tiles>::Scattered(rows, row_count, query, padded_dim, scores);
}

}  // namespace simile::certificate

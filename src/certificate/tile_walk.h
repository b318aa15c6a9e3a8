#pragma once

#include <cstddef>

namespace simile::certificate {

// How many rows a register tile holds. Four, because the final additions of four rows share their
// shuffles.
inline constexpr std::size_t kTileRows = 4;

// How many queries a register tile holds at most: 4 x 3 pairs leave registers for the operands.
inline constexpr std::size_t kTileQueries = 3;

// Four rows of a block. The last tile of a block may have fewer rows. Then its last row is
// repeated; the repeated rows are computed and not stored.
struct RowTile {
  const float* rows[kTileRows];
  std::size_t count;
};

// A single query is bound by memory, which is read fastest in a few streams at once. So a block is
// then read at this many places side by side. On Zen 3 three streams reach 41 GB/s, one reaches 30,
// and software prefetch less (scan_bench).
inline constexpr std::size_t kStreams = 3;

// How far ahead of each stream AVX-512 code prefetches (scan_bench).
inline constexpr std::size_t kPrefetchFloats = 512;

// Divides a block of scores into register tiles and calls Tiles for each.
//   Tiles::Stream(rows, stride, query, padded_dim, scores)
//       one query against kStreams rows, `stride` floats apart
//   Tiles::template Score<n>(tile, queries, padded_dim, scores, row_count)
//       n <= kTileQueries queries against a tile; scores + q * row_count is where query q's go
// Tiles must be a type of an unnamed namespace: its instantiations, which use the file's
// instruction set, then stay private to the file (see canonical_kernels.h).
template <class Tiles>
struct TileWalk {
  static void Block(const float* rows, std::size_t row_count, const float* queries,
                    std::size_t query_count, std::size_t padded_dim, float* scores) {
    if (query_count == 1) return Streams(rows, row_count, queries, padded_dim, scores);
    // A strip of rows stays in the first-level cache for all queries; the next one is prefetched
    // meanwhile.
    const std::size_t row_bytes = padded_dim * sizeof(float);
    std::size_t strip_rows = kStripBytes / row_bytes / kTileRows * kTileRows;
    if (strip_rows == 0) strip_rows = kTileRows;
    for (std::size_t first = 0; first < row_count; first += strip_rows) {
      const std::size_t left = row_count - first;
      const std::size_t last = first + (left < strip_rows ? left : strip_rows);
      Strip(rows, row_count, first, last, queries, query_count, padded_dim, scores);
    }
  }

  // CanonicalKernel::score_scattered.
  static void Scattered(const float* const* rows, std::size_t row_count, const float* query,
                        std::size_t padded_dim, float* scores) {
    for (std::size_t first = 0; first < row_count; first += kTileRows) {
      const std::size_t left = row_count - first;
      RowTile tile;
      tile.count = left < kTileRows ? left : kTileRows;
      for (std::size_t i = 0; i < kTileRows; ++i) {
        tile.rows[i] = rows[first + (i < tile.count ? i : tile.count - 1)];
      }
      Tiles::template Score<1>(tile, query, padded_dim, scores + first, row_count);
    }
  }

 private:
  static constexpr std::size_t kStripBytes = 16U << 10;  // estimated

  static void Streams(const float* rows, std::size_t row_count, const float* query,
                      std::size_t padded_dim, float* scores) {
    const std::size_t length = row_count / kStreams;
    for (std::size_t row = 0; row < length; ++row) {
      float streamed[kStreams];
      Tiles::Stream(rows + row * padded_dim, length * padded_dim, query, padded_dim, streamed);
      for (std::size_t i = 0; i < kStreams; ++i) scores[row + i * length] = streamed[i];
    }
    const std::size_t done = length * kStreams;
    if (done < row_count) {
      Tiles::template Score<1>(TileAt(rows, row_count, done, padded_dim), query, padded_dim,
                               scores + done, row_count);
    }
  }

  static RowTile TileAt(const float* rows, std::size_t row_count, std::size_t first,
                        std::size_t padded_dim) {
    RowTile tile;
    tile.count = row_count - first < kTileRows ? row_count - first : kTileRows;
    for (std::size_t i = 0; i < kTileRows; ++i) {
      tile.rows[i] = rows + (first + (i < tile.count ? i : tile.count - 1)) * padded_dim;
    }
    return tile;
  }

  static void Strip(const float* rows, std::size_t row_count, std::size_t first, std::size_t last,
                    const float* queries, std::size_t query_count, std::size_t padded_dim,
                    float* scores) {
    std::size_t query = 0;
    while (query < query_count) {
      const std::size_t left = query_count - query;
      const std::size_t width = left < kTileQueries ? left : kTileQueries;
      PrefetchShare(rows + last * padded_dim, (last - first) * padded_dim, query, width,
                    query_count);
      for (std::size_t row = first; row < last; row += kTileRows) {
        Tile(width, TileAt(rows, row_count, row, padded_dim), queries + query * padded_dim,
             padded_dim, scores + query * row_count + row, row_count);
      }
      query += width;
    }
  }

  // Prefetches the part of the next `count` floats that falls to queries [query, query + width).
  // Prefetching past the end is harmless.
  static void PrefetchShare(const float* next, std::size_t count, std::size_t query,
                            std::size_t width, std::size_t query_count) {
    constexpr std::size_t kLineFloats = 64 / sizeof(float);
    const std::size_t lines = count / kLineFloats;
    const std::size_t end = lines * (query + width) / query_count;
    for (std::size_t line = lines * query / query_count; line < end; ++line) {
      __builtin_prefetch(next + line * kLineFloats);
    }
  }

  static void Tile(std::size_t width, const RowTile& tile, const float* queries,
                   std::size_t padded_dim, float* scores, std::size_t row_count) {
    static_assert(kTileQueries == 3 && kStreams < kTileRows);
    switch (width) {
      case 3:
        return Tiles::template Score<3>(tile, queries, padded_dim, scores, row_count);
      case 2:
        return Tiles::template Score<2>(tile, queries, padded_dim, scores, row_count);
      default:
        return Tiles::template Score<1>(tile, queries, padded_dim, scores, row_count);
    }
  }
};

}  // namespace simile::certificate

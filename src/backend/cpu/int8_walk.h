#pragma once

#include "backend/cpu/int8_kernel.h"

namespace simile::backend::cpu {

// Walks a block in pieces of four groups by up to four queries and calls Products for each.
//   Products::template Score<n>(codes, group_stride, queries, steps, starts, sums)
//       n <= 4 queries against four groups. sums[(q * 4 + group) * 16 + row] is written wherever
//       the piece has a hit; returns whether it has one.
// Products must be a type of an unnamed namespace: what is instantiated from it is then private to
// the file, and its instruction set with it.
template <class Products>
struct Int8Walk {
  static constexpr std::size_t kQueriesTogether = 4;

  // Int8Kernel's functions.
  static void Enter(std::size_t /*query_count*/) {}
  static void Leave() {}
  static void Scan(const BlockScan& block) {
    const std::size_t group_bytes = block.code_dim * kGroupRows;
    const std::size_t pieces = block.group_count / kGroupsTogether;
    *block.hit_count = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      Prefetch(block, piece, pieces);
      const std::uint8_t* codes = block.codes + piece * kGroupsTogether * group_bytes;
      for (std::size_t query = 0; query < block.query_count; query += kQueriesTogether) {
        const std::size_t left = block.query_count - query;
        Piece(block, left < kQueriesTogether ? left : kQueriesTogether, codes, group_bytes, query,
              piece);
      }
    }
  }

 private:
  static constexpr std::size_t kLineBytes = 64;

  static void Prefetch(const BlockScan& block, std::size_t piece, std::size_t pieces) {
    const std::size_t lines = block.next_bytes / kLineBytes;
    const std::size_t end = lines * (piece + 1) / pieces;
    for (std::size_t line = lines * piece / pieces; line < end; ++line) {
      __builtin_prefetch(block.next + line * kLineBytes, 0, 2);
    }
  }

  static void Piece(const BlockScan& block, std::size_t width, const std::uint8_t* codes,
                    std::size_t group_bytes, std::size_t query, std::size_t piece) {
    const std::size_t tile = query / kTileQueries;
    const std::int8_t* queries =
        block.queries + tile * kTileQueries * block.code_dim + query % kTileQueries * 64;
    if (!Score(width, codes, group_bytes, queries, block.code_dim / 64, block.starts + query,
               block.scratch))
      return;
    constexpr std::size_t kRows = kGroupsTogether * kGroupRows;
    for (std::size_t q = 0; q < width; ++q) {
      for (std::size_t row = 0; row < kRows; ++row) {
        const std::int32_t sum = block.scratch[q * kRows + row];
        if (sum < 0) continue;
        block.hits[(*block.hit_count)++] = {static_cast<std::uint32_t>(query + q),
                                            static_cast<std::uint32_t>(piece * kRows + row), sum};
      }
    }
  }

  static bool Score(std::size_t width, const std::uint8_t* codes, std::size_t group_bytes,
                    const std::int8_t* queries, std::size_t steps, const std::int32_t* starts,
                    std::int32_t* sums) {
    static_assert(kQueriesTogether == 4);
    switch (width) {
      case 4:
        return Products::template Score<4>(codes, group_bytes, queries, steps, starts, sums);
      case 3:
        return Products::template Score<3>(codes, group_bytes, queries, steps, starts, sums);
      case 2:
        return Products::template Score<2>(codes, group_bytes, queries, steps, starts, sums);
      default:
        return Products::template Score<1>(codes, group_bytes, queries, steps, starts, sums);
    }
  }
};

}  // namespace simile::backend::cpu

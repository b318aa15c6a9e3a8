#pragma once

#include "backend/cpu/int8_kernel.h"

namespace simile::backend::cpu {

// Walks a block in pieces of four groups by up to four queries and calls Products for each.
//   Products::Bytes<kFirst>, Products::Nibbles
//       How codes become row bytes; kInOneByte says how many of them a byte of codes holds. Made
//       from BlockScan::nibble_bytes and the bytes of a piece: when a piece is read for the first
//       time (Bytes<true>, Nibbles), each read brings the same place of the next one closer. Asking
//       for the whole next block meanwhile, or for the next piece at once, leaves bandwidth unused;
//       docs/design/cpu-engine.md has the figures.
//   Products::template Score<n>(codes, group, group_stride, queries, steps, starts, sums)
//       n <= 4 queries against four groups. sums[(q * 4 + group) * 16 + row] is written wherever
//       the piece has a hit; returns whether it has one.
// Products must be a type of an unnamed namespace: what is instantiated from it is then private to
// the file, and its instruction set with it.
template <class Products>
struct Int8Walk {
  // Int8Kernel's functions.
  static void Enter(std::size_t /*query_count*/) {}
  static void Leave() {}
  static void Scan(const BlockScan& block) {
    if (block.nibble_bytes != nullptr) {
      Scan<typename Products::Nibbles, typename Products::Nibbles>(block);
    } else {
      Scan<typename Products::template Bytes<true>, typename Products::template Bytes<false>>(
          block);
    }
  }

 private:
  template <class First, class Again>
  static void Scan(const BlockScan& block) {
    const std::size_t group_bytes = block.code_dim * kGroupRows / First::kInOneByte;
    const std::size_t piece_bytes = kGroupsTogether * group_bytes;
    const First first(block.nibble_bytes, piece_bytes);
    const Again again(block.nibble_bytes, piece_bytes);
    const std::size_t pieces = block.group_count / kGroupsTogether;
    *block.hit_count = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const std::uint8_t* groups = block.codes + piece * piece_bytes;
      for (std::size_t query = 0; query < block.query_count; query += kQueriesTogether) {
        const std::size_t left = block.query_count - query;
        const std::size_t width = left < kQueriesTogether ? left : kQueriesTogether;
        if (query == 0) {
          Piece(block, width, first, groups, group_bytes, query, piece);
        } else {
          Piece(block, width, again, groups, group_bytes, query, piece);
        }
      }
    }
  }

  template <class Codes>
  static void Piece(const BlockScan& block, std::size_t width, const Codes& codes,
                    const std::uint8_t* group, std::size_t group_bytes, std::size_t query,
                    std::size_t piece) {
    const std::size_t tile = query / kTileQueries;
    const std::int8_t* queries =
        block.queries + tile * kTileQueries * block.code_dim + query % kTileQueries * 64;
    if (!Score(width, codes, group, group_bytes, queries, block.code_dim / 64, block.starts + query,
               block.scratch))
      return;
    for (std::size_t q = 0; q < width; ++q) {
      for (std::size_t row = 0; row < kRowsTogether; ++row) {
        const std::int32_t sum = block.scratch[q * kRowsTogether + row];
        if (sum < 0) continue;
        block.hits[(*block.hit_count)++] = {static_cast<std::uint32_t>(query + q),
                                            static_cast<std::uint32_t>(piece * kRowsTogether + row),
                                            sum};
      }
    }
  }

  template <class Codes>
  static bool Score(std::size_t width, const Codes& codes, const std::uint8_t* group,
                    std::size_t group_bytes, const std::int8_t* queries, std::size_t steps,
                    const std::int32_t* starts, std::int32_t* sums) {
    static_assert(kQueriesTogether == 4);
    switch (width) {
      case 4:
        return Products::template Score<4>(codes, group, group_bytes, queries, steps, starts, sums);
      case 3:
        return Products::template Score<3>(codes, group, group_bytes, queries, steps, starts, sums);
      case 2:
        return Products::template Score<2>(codes, group, group_bytes, queries, steps, starts, sums);
      default:
        return Products::template Score<1>(codes, group, group_bytes, queries, steps, starts, sums);
    }
  }
};

}  // namespace simile::backend::cpu

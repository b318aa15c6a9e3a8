#pragma once

#include "backend/cpu/int8_kernel.h"

namespace simile::backend::cpu {

// One of the turns in which a piece is scanned for up to four queries each.
struct PieceTurn {
  std::size_t piece_bytes;  // from a place to the same place of the next piece
  // The lines of the next piece that this turn prefetches: from .. to - 1 of the sixteen lines of
  // each step of a group (64 columns of its sixteen rows).
  std::size_t from;
  std::size_t to;
};

// Appends the hits among sixteen sums.
//   bits   bit i is set when sum i is a hit
//   first_pair  of the first sum
__attribute__((always_inline)) static inline void AppendBits(unsigned bits,
                                                             const std::int32_t* sums,
                                                             std::uint32_t first_pair,
                                                             HitList& hits) {
  for (; bits != 0; bits &= bits - 1) {
    const auto row = static_cast<std::uint32_t>(__builtin_ctz(bits));
    hits.pairs[hits.count] = first_pair + row;
    hits.sums[hits.count++] = sums[row];
  }
}

// Walks a block in pieces of four groups by up to four queries and calls Products for each.
//   Products::Bytes<kOneTurn>, Products::Int4
//       How codes become row bytes; kInOneByte says how many codes a byte holds. Constructed for
//       each turn from BlockScan::int4_bytes and the PieceTurn. With a single turn (Bytes<true>,
//       Int4) it prefetches the next piece line by line as it reads this one; with more turns, each
//       prefetches its share between the products. Prefetching the whole next piece or block at
//       once leaves bandwidth unused (docs/design/cpu-engine.md has the figures).
//   Products::template Score<n>(codes, group, group_stride, queries, steps, starts, sums)
//       n <= 4 queries against four groups. sums[(q * 4 + group) * 16 + row] is written wherever
//       the piece has a hit; returns whether it has one. Its loops are unrolled with pragmas,
//       because GCC 12 otherwise moves every sum between registers around each product, which costs
//       a third of the speed (estimated).
//   Products::Append(sums, first_pair, hits)
//       appends the hits among sixteen sums to a HitList: those of one query and one group, whose
//       first row makes this pair. Most groups have none.
// Products must be a type of an unnamed namespace: its instantiations, which use the file's
// instruction set, then stay private to the file.
template <class Products>
struct Int8Walk {
  // Int8Kernel's functions.
  static void Enter(std::size_t /*query_count*/) {}
  static void Leave() {}
  static void Scan(const BlockScan& block) {
    if (block.int4_bytes != nullptr) {
      Scan<typename Products::Int4>(block);
    } else if (block.query_count <= kQueriesTogether) {
      Scan<typename Products::template Bytes<true>>(block);
    } else {
      Scan<typename Products::template Bytes<false>>(block);
    }
  }

 private:
  static constexpr std::size_t kLinesOfStep = 16;

  template <class Codes>
  static void Scan(const BlockScan& block) {
    const std::size_t group_bytes = block.code_dim * kGroupRows / Codes::kInOneByte;
    const std::size_t piece_bytes = kGroupsTogether * group_bytes;
    const std::size_t pieces = block.group_count / kGroupsTogether;
    const std::size_t turns = (block.query_count + kQueriesTogether - 1) / kQueriesTogether;
    block.hits->count = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const std::uint8_t* groups = block.codes + piece * piece_bytes;
      for (std::size_t turn = 0; turn < turns; ++turn) {
        const Codes codes(block.int4_bytes, {piece_bytes, kLinesOfStep * turn / turns,
                                             kLinesOfStep * (turn + 1) / turns});
        const std::size_t query = turn * kQueriesTogether;
        const std::size_t left = block.query_count - query;
        const std::size_t width = left < kQueriesTogether ? left : kQueriesTogether;
        Piece(block, width, codes, groups, group_bytes, query, piece);
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
      for (std::size_t row = 0; row < kRowsTogether; row += kGroupRows) {
        Products::Append(block.scratch + q * kRowsTogether + row,
                         ToPair(query + q, piece * kRowsTogether + row), *block.hits);
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

#pragma once

// The first stage's product of codes, one implementation an instruction set.
//
// Each file that implements it is compiled with its own instruction-set flags and includes nothing
// but this header, the int8_*.h beside it and the intrinsics; certificate/canonical_kernels.h says
// why.

#include <cstddef>
#include <cstdint>

namespace simile::backend::cpu {

// Rows are packed in groups of sixteen, queries in tiles of sixteen.
inline constexpr std::size_t kGroupRows = 16;
inline constexpr std::size_t kTileQueries = 16;
// Blocks are whole multiples of this many groups.
inline constexpr std::size_t kGroupsTogether = 4;
inline constexpr std::size_t kRowsTogether = kGroupRows * kGroupsTogether;
// Queries that the vector kernels take together.
inline constexpr std::size_t kQueriesTogether = 4;

// Hits are pairs of a query and a row of the block whose sum is at least zero. They are kept in two
// arrays, so that all hits of a register are stored at once.
struct HitList {
  std::uint32_t* pairs;  // ToPair(query, row)
  std::int32_t* sums;    // the start included
  std::size_t count;
};
inline constexpr unsigned kPairRowBits = 16;
// REQUIRES: query and row are below 2^16. Always inlined, because of the note above.
[[gnu::always_inline]] constexpr std::uint32_t ToPair(std::size_t query, std::size_t row) {
  return static_cast<std::uint32_t>(query << kPairRowBits | row);
}
constexpr std::size_t QueryOf(std::uint32_t pair) { return pair >> kPairRowBits; }
constexpr std::size_t RowOf(std::uint32_t pair) { return pair & ((1U << kPairRowBits) - 1); }

// One block of rows against all queries of a pass: for each query q and row r
//
//   sum = start[q] + sum over i of query_code[q][i] * row_byte[r][i]
//
// and where sum >= 0, ToPair(q, r) and the sum are appended to the hits. Starting at minus the gate
// makes a hit a clear sign bit, which is tested for many sums at once.
struct BlockScan {
  // Row bytes, 1 .. 255: code + 128; 64-byte aligned:
  //   [group_count][code_dim / 4][16 rows][4]
  // or, when int4_bytes is not null (kernels that read int4, at most kQueriesTogether queries):
  //   [group_count][code_dim / 8][16 rows][4]
  // whose j-th four bytes hold columns 8j .. 8j + 3 in their low four bits and 8j + 4 .. 8j + 7 in
  // their high four.
  const std::uint8_t* codes;
  const std::uint8_t* int4_bytes;  // [16]  the row byte of each int4 code
  std::size_t group_count;         // a multiple of kGroupsTogether
  std::size_t code_dim;            // a multiple of 64
  // [tile][code_dim / 64][16 queries][64], 64-byte aligned. May begin at a query inside a tile when
  // all queries are in this tile. The rest of the tile must be readable. Another thread may be
  // writing there, so the kernel ignores these bytes.
  const std::int8_t* queries;
  std::size_t query_count;
  const std::int32_t* starts;  // [query_count]
  // Written. Needs a capacity of query_count * rows of the block: whole registers are stored, but
  // never beyond the number of tested sums.
  HitList* hits;
  const std::uint8_t* next;  // the bytes that will be read next, for kernels that prefetch
  std::size_t next_bytes;
  std::int32_t* scratch;  // ScratchBytes(query_count), 64-byte aligned, the calling thread's own
};

// A kernel may add the products of four columns in sixteen bits. Each eight columns make two such
// fours: 0, 1, 4, 5 and 2, 3, 6, 7. Returns the four that a column belongs to.
constexpr std::size_t WhichFour(std::size_t column) { return column / 2 % 2; }

struct Int8Kernel {
  const char* isa;  // "amx", "avx512vnni", "avxvnni", "avx2", "neondot", "portable"
  // The limit for the sum of a query's positive codes in four columns (WhichFour), and for the sum
  // of the magnitudes of its negative codes; 0: no limit.
  std::int32_t four_columns_max;
  bool reads_int4;
  // The multiply-adds of one piece of a search (simile/turn.h): some milliseconds on a slow core.
  // Estimated.
  std::size_t products_at_once;
  // A thread calls enter before the blocks that it scans for some of query_count queries, and leave
  // after them.
  void (*enter)(std::size_t query_count);
  void (*leave)();
  void (*scan)(const BlockScan& block);
};

// Accumulators of two blocks of 32 x 32, and one row of starts for each query.
constexpr std::size_t ScratchBytes(std::size_t query_count) {
  constexpr std::size_t kTileBytes = 1024;
  const std::size_t tiles = (query_count + kTileQueries - 1) / kTileQueries;
  return (std::size_t{2} * 4 + tiles) * kTileBytes;
}

#if defined(__x86_64__)
extern const Int8Kernel kInt8Amx;
extern const Int8Kernel kInt8Avx512Vnni;
extern const Int8Kernel kInt8AvxVnni;
extern const Int8Kernel kInt8Avx2;
#elif defined(__aarch64__)
extern const Int8Kernel kInt8NeonDot;
#endif
extern const Int8Kernel kInt8Portable;

}  // namespace simile::backend::cpu

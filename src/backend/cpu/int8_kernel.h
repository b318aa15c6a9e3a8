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

// A query and a row of the block whose accumulator ended at zero or above.
struct RawHit {
  std::uint32_t query;
  std::uint32_t row;  // of the block
  std::int32_t sum;   // the start included
};

// One block of rows against all queries of a pass: for each query q and row r
//
//   sum = start[q] + sum over i of query_code[q][i] * row_byte[r][i]
//
// and where sum >= 0, {q, r, sum} is appended to the hits. Starting at minus the gate makes a hit a
// clear sign bit, which is tested for many sums at once.
struct BlockScan {
  // Row bytes, code + code_max + 1; 64-byte aligned:
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
  // all end in that tile. The rest of the tile must be readable; another thread may be writing
  // there, so the kernel ignores what it reads.
  const std::int8_t* queries;
  std::size_t query_count;
  const std::int32_t* starts;  // [query_count]
  RawHit* hits;                // capacity query_count * rows of the block
  std::size_t* hit_count;      // written
  const std::uint8_t* next;    // what will be read next, for kernels that prefetch it
  std::size_t next_bytes;
  std::int32_t* scratch;  // ScratchBytes(query_count), 64-byte aligned, the calling thread's own
};

struct Int8Kernel {
  const char* isa;        // "amx", "avx512vnni", "avxvnni", "avx2", "neondot", "portable"
  std::int32_t code_max;  // of rows and queries; see certificate/quantizer.h
  bool reads_int4;
  // A thread calls enter before and leave after the blocks that it scans for some of query_count
  // queries.
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

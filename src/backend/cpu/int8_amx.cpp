// Compiled with -mamx-tile -mamx-int8 -mavx512f -mavx512bw -mavx512dq -mavx512vl. Read the note in
// int8_kernel.h before including anything.
#include <immintrin.h>

#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/int8_sixteen_sums.h"

namespace simile::backend::cpu {
namespace {

// Tiles 0-3 hold sums; the other tiles hold operands. A row of a tile is 64 bytes: sixteen sums, or
// 64 columns of a query, or four columns of sixteen rows.
constexpr std::size_t kTileBytes = 1024;
constexpr std::size_t kTileInts = kTileBytes / sizeof(std::int32_t);
constexpr int kTileStride = 64;
constexpr std::size_t kLineBytes = 64;

// Up to this many tiles of queries, each row is read once and multiplied with all of them, because
// memory is the limit.
constexpr std::size_t kStreamTilesMax = 2;
// How far ahead of its loads a stream of rows is prefetched: twenty lines
// (docs/design/cpu-engine.md has the distances measured at 32 queries).
constexpr std::size_t kStreamAhead = 20 * kLineBytes;

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

// Fewer queries than a tile holds make its product proportionally cheaper.
void Enter(std::size_t query_count) {
  const std::size_t queries = query_count < kTileQueries ? query_count : kTileQueries;
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    const bool of_rows = tile >= 6;
    config.row_bytes[tile] = 64;
    config.rows[tile] = static_cast<std::uint8_t>(of_rows ? 16 : queries);
  }
  // GCC 12 assumes that the load reads eight bytes and may drop the stores of the other bytes.
  asm volatile("" : : "m"(config));
  _tile_loadconfig(&config);
}

void Leave() { _tile_release(); }

// The places of four tiles of sums in the block.
struct Quad {
  std::size_t tiles[4];   // of queries
  std::size_t groups[4];  // of rows
};

// Prefetches the next block while this block is scanned, spread evenly over the products and from
// eight places in turn. The processor also prefetches each of the eight streams by itself, so that
// more lines are in flight than with one stream (docs/design/cpu-engine.md has the figures).
class NextBlock {
 public:
  //   products  of this block; AfterProduct is called for each
  NextBlock(const std::uint8_t* next, std::size_t bytes, std::size_t products)
      : next_(next),
        share_(bytes / kLineBytes / kPlaces),
        left_(share_ * kPlaces),
        lines_a_product_((left_ * kOne + products - 1) / products) {}

  void AfterProduct() {
    for (due_ += lines_a_product_; due_ >= kOne; due_ -= kOne) {
      if (left_ == 0) return;
      --left_;
      const std::size_t line = left_ % kPlaces * share_ + (share_ - 1 - left_ / kPlaces);
      _mm_prefetch(reinterpret_cast<const char*>(next_ + line * kLineBytes), _MM_HINT_T1);
    }
  }

 private:
  static constexpr std::size_t kPlaces = 8;
  static constexpr std::size_t kOne = 256;  // one line, in the unit of what is due

  const std::uint8_t* next_;
  std::size_t share_;  // lines between one place and the next
  std::size_t left_;
  std::size_t lines_a_product_;
  std::size_t due_ = 0;
};

// One thread's state while it scans a block.
class AmxScan {
 public:
  explicit AmxScan(const BlockScan& block)
      : block_(block),
        steps_(block.code_dim / 64),
        panel_bytes_(steps_ * kTileBytes),
        tile_count_((block.query_count + kTileQueries - 1) / kTileQueries),
        starts_(block.scratch + std::size_t{2} * 4 * kTileInts),
        next_(block.next, block.next_bytes, steps_ * block.group_count * tile_count_) {
    for (std::size_t query = 0; query < block.query_count; ++query) {
      _mm512_store_si512(starts_ + query * 16, _mm512_set1_epi32(block.starts[query]));
    }
  }

  void Run() {
    block_.hits->count = 0;
    if (tile_count_ <= kStreamTilesMax) {
      Stream();
    } else {
      Revisit();
    }
    TestPrevious();
  }

 private:
  // The groups of one step lie far apart, so that each is a long stream of its own.
  void Stream() {
    static_assert(kStreamTilesMax == 2);
    const std::size_t half = block_.group_count / 2;
    const std::size_t quarter = block_.group_count / 4;
    if (tile_count_ == 2) {
      for (std::size_t group = 0; group < half; ++group) TwoByTwo<true>(0, group, half);
    } else {
      for (std::size_t group = 0; group < quarter; ++group) OneByFour<true>(group, quarter);
    }
  }

  // Two tiles of queries at a time stay in the first-level cache; the block stays in the
  // second-level cache.
  void Revisit() {
    for (std::size_t pair = 0; pair < tile_count_ / 2; ++pair) {
      for (std::size_t group = 0; group < block_.group_count; group += 2)
        TwoByTwo<false>(pair, group, 1);
    }
    if (tile_count_ % 2 == 0) return;
    for (std::size_t group = 0; group < block_.group_count; group += kGroupsTogether)
      OneByFour<false>(group, 1);
  }

  // 32 queries against the 32 rows of two groups.
  //   kStream  whether the rows are read here for the first and only time
  //   apart groups between the first and the second
  template <bool kStream>
  void TwoByTwo(std::size_t pair, std::size_t group, std::size_t apart) {
    const std::int8_t* queries = block_.queries + 2 * pair * panel_bytes_;
    const std::uint8_t* rows = block_.codes + group * panel_bytes_;
    const std::size_t gap = apart * panel_bytes_;
    const std::int32_t* starts = starts_ + 2 * pair * kTileInts;
    _tile_loadd(0, starts, kTileStride);
    _tile_loadd(1, starts, kTileStride);
    _tile_loadd(2, starts + kTileInts, kTileStride);
    _tile_loadd(3, starts + kTileInts, kTileStride);
    for (std::size_t step = 0; step < steps_; ++step) {
      _tile_loadd(4, queries, kTileStride);
      _tile_loadd(6, rows, kTileStride);
      _tile_dpbsud(0, 4, 6);
      AfterProduct<kStream, 2>(rows, gap, 0);
      _tile_loadd(7, rows + gap, kTileStride);
      _tile_dpbsud(1, 4, 7);
      AfterProduct<kStream, 2>(rows, gap, 1);
      _tile_loadd(5, queries + panel_bytes_, kTileStride);
      _tile_dpbsud(2, 5, 6);
      AfterProduct<kStream, 2>(rows, gap, 2);
      _tile_dpbsud(3, 5, 7);
      AfterProduct<kStream, 2>(rows, gap, 3);
      queries += kTileBytes;
      rows += kTileBytes;
    }
    Store({{2 * pair, 2 * pair, 2 * pair + 1, 2 * pair + 1},
           {group, group + apart, group, group + apart}});
  }

  // The last sixteen queries, when their number of tiles is odd, against the 64 rows of four
  // groups.
  template <bool kStream>
  void OneByFour(std::size_t group, std::size_t apart) {
    const std::size_t tile = tile_count_ - 1;
    const std::int8_t* queries = block_.queries + tile * panel_bytes_;
    const std::uint8_t* rows = block_.codes + group * panel_bytes_;
    const std::size_t gap = apart * panel_bytes_;
    const std::int32_t* starts = starts_ + tile * kTileInts;
    _tile_loadd(0, starts, kTileStride);
    _tile_loadd(1, starts, kTileStride);
    _tile_loadd(2, starts, kTileStride);
    _tile_loadd(3, starts, kTileStride);
    for (std::size_t step = 0; step < steps_; ++step) {
      _tile_loadd(4, queries, kTileStride);
      _tile_loadd(6, rows, kTileStride);
      _tile_dpbsud(0, 4, 6);
      AfterProduct<kStream, 4>(rows, gap, 0);
      _tile_loadd(7, rows + gap, kTileStride);
      _tile_dpbsud(1, 4, 7);
      AfterProduct<kStream, 4>(rows, gap, 1);
      _tile_loadd(6, rows + 2 * gap, kTileStride);
      _tile_dpbsud(2, 4, 6);
      AfterProduct<kStream, 4>(rows, gap, 2);
      _tile_loadd(7, rows + 3 * gap, kTileStride);
      _tile_dpbsud(3, 4, 7);
      AfterProduct<kStream, 4>(rows, gap, 3);
      queries += kTileBytes;
      rows += kTileBytes;
    }
    Store({{tile, tile, tile, tile}, {group, group + apart, group + 2 * apart, group + 3 * apart}});
  }

  // Prefetches between two products.
  //   rows, gap  the first of kTiles tiles of rows, and the bytes from one to the next
  //   quarter    index of the product in a step of four
  template <bool kStream, std::size_t kTiles>
  void AfterProduct(const std::uint8_t* rows, std::size_t gap, std::size_t quarter) {
    if constexpr (kStream) {
      constexpr std::size_t kBytes = kTileBytes / 4;
      const std::uint8_t* ahead = rows + kStreamAhead + quarter * kBytes;
      for (std::size_t tile = 0; tile < kTiles; ++tile, ahead += gap) {
        for (std::size_t i = 0; i < kBytes; i += kLineBytes)
          _mm_prefetch(reinterpret_cast<const char*>(ahead + i), _MM_HINT_T0);
      }
    } else {
      next_.AfterProduct();
    }
  }

  // Tests the sums of the previous piece while the sums of this piece are formed. Out-of-order
  // execution overlaps the two, so the test costs almost nothing.
  void Store(const Quad& quad) {
    TestPrevious();
    std::int32_t* sums = block_.scratch + turn_ * 4 * kTileInts;
    _tile_stored(0, sums, kTileStride);
    _tile_stored(1, sums + kTileInts, kTileStride);
    _tile_stored(2, sums + 2 * kTileInts, kTileStride);
    _tile_stored(3, sums + 3 * kTileInts, kTileStride);
    stored_ = quad;
    stored_sums_ = sums;
    turn_ ^= 1;
  }

  void TestPrevious() {
    if (stored_sums_ == nullptr) return;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int32_t* sums = stored_sums_ + i * kTileInts;
      if (HasHit(sums, CountRows(stored_.tiles[i])))
        Append(sums, stored_.tiles[i], stored_.groups[i]);
    }
  }

  std::size_t CountRows(std::size_t tile) const {
    const std::size_t left = block_.query_count - tile * kTileQueries;
    return left < kTileQueries ? left : kTileQueries;
  }

  static __m512i Load(const std::int32_t* sums, std::size_t row) {
    return _mm512_load_si512(sums + row * 16);
  }
  static __m512i And(__m512i a, __m512i b, __m512i c) {
    return _mm512_ternarylogic_epi32(a, b, c, 0x80);
  }

  // Only hits have sums that are not negative, so the AND of all sums has a clear sign bit if there
  // is a hit.
  static bool HasHit(const std::int32_t* sums, std::size_t queries) {
    if (queries == kTileQueries) {
      __m512i low = And(Load(sums, 0), Load(sums, 1), Load(sums, 2));
      __m512i high = And(Load(sums, 8), Load(sums, 9), Load(sums, 10));
      low = And(low, Load(sums, 3), Load(sums, 4));
      high = And(high, Load(sums, 11), Load(sums, 12));
      low = And(low, Load(sums, 5), Load(sums, 6));
      high = And(high, Load(sums, 13), Load(sums, 14));
      low = And(low, Load(sums, 7), Load(sums, 15));
      return _mm512_movepi32_mask(_mm512_and_si512(low, high)) != 0xFFFF;
    }
    __m512i all = Load(sums, 0);
    for (std::size_t query = 1; query < queries; ++query)
      all = _mm512_and_si512(all, Load(sums, query));
    return _mm512_movepi32_mask(all) != 0xFFFF;
  }

  __attribute__((noinline)) void Append(const std::int32_t* sums, std::size_t tile,
                                        std::size_t group) {
    const std::size_t queries = CountRows(tile);
    HitList hits = *block_.hits;  // a local copy, because the compiler must assume that the stores
                                  // change *block_.hits
    for (std::size_t i = 0; i < queries; ++i)
      AppendSixteen(Load(sums, i), ToPair(tile * kTileQueries + i, group * kGroupRows), hits);
    block_.hits->count = hits.count;
  }

  const BlockScan& block_;
  const std::size_t steps_;
  const std::size_t panel_bytes_;  // of a tile of queries, and of a group of rows
  const std::size_t tile_count_;
  std::int32_t* const starts_;  // [tile, 16, 16]
  NextBlock next_;
  Quad stored_{};
  const std::int32_t* stored_sums_ = nullptr;
  std::size_t turn_ = 0;
};

void Scan(const BlockScan& block) { AmxScan(block).Run(); }

}  // namespace

const Int8Kernel kInt8Amx{"amx", 0, false, 1U << 30, &Enter, &Leave, &Scan};

}  // namespace simile::backend::cpu

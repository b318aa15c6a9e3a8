// Compiled with -march=armv8.2-a+dotprod. Read the note in int8_kernel.h before including anything.
#include <arm_neon.h>

#include "backend/cpu/int8_walk.h"

namespace simile::backend::cpu {
namespace {

// The dot product multiplies signed bytes (mixed signs need a later extension). So a row byte of 0
// .. 255 is read as -128 .. 127, and 128 times the sum of the query's codes is added to the query's
// start (BiasedStarts).
constexpr std::uint8_t kSignBit = 0x80;
constexpr std::int32_t kBias = 128;

// Loads four columns of four rows of a group, signed: `half` says which four of eight neighbouring
// columns, `quarter` which four of the sixteen rows.
template <bool kOneTurn>
class RowBytes {
 public:
  static constexpr std::size_t kInOneByte = 1;

  RowBytes(const std::uint8_t* /*int4_bytes*/, const PieceTurn& turn) : turn_(turn) {}

  // Called before the loads of a step's 64 columns.
  void AtStep(const std::uint8_t* group, std::size_t step) const {
    if constexpr (kOneTurn) return;
    const std::uint8_t* ahead = group + turn_.piece_bytes + step * kGroupRows * 64;
    for (std::size_t line = turn_.from; line < turn_.to; ++line)
      __builtin_prefetch(ahead + line * 64, 0, 2);
  }
  int8x16_t Load(const std::uint8_t* group, std::size_t pair, std::size_t half,
                 std::size_t quarter) const {
    const std::uint8_t* at = group + (pair * 2 + half) * 64;
    if (kOneTurn && quarter == 0) __builtin_prefetch(at + turn_.piece_bytes, 0, 3);
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(at + quarter * 16), vdupq_n_u8(kSignBit)));
  }

 private:
  PieceTurn turn_;
};

class RowInt4 {
 public:
  static constexpr std::size_t kInOneByte = 2;

  RowInt4(const std::uint8_t* int4_bytes, const PieceTurn& turn)
      : piece_bytes_(turn.piece_bytes),
        bytes_(vreinterpretq_s8_u8(veorq_u8(vld1q_u8(int4_bytes), vdupq_n_u8(kSignBit)))) {}

  void AtStep(const std::uint8_t*, std::size_t) const {}
  int8x16_t Load(const std::uint8_t* group, std::size_t pair, std::size_t half,
                 std::size_t quarter) const {
    const std::uint8_t* at = group + pair * 64;
    if (half == 0 && quarter == 0) __builtin_prefetch(at + piece_bytes_, 0, 3);
    const uint8x16_t int4 = vld1q_u8(at + quarter * 16);
    return vqtbl1q_s8(bytes_, half == 0 ? vandq_u8(int4, vdupq_n_u8(15)) : vshrq_n_u8(int4, 4));
  }

 private:
  std::size_t piece_bytes_;
  int8x16_t bytes_;
};

constexpr std::size_t kQuarters = 4;  // registers of four sums, for the rows of a group

struct NeonDotProducts {
  template <bool kOneTurn>
  using Bytes = RowBytes<kOneTurn>;
  using Int4 = RowInt4;

  // Four groups one after the other. Of the 32 registers, sixteen hold the sums of four queries,
  // four hold sixteen columns of each query, and four hold the rows' bytes.
  template <std::size_t kQueries, class Codes>
  static bool Score(const Codes& codes, const std::uint8_t* group, std::size_t group_bytes,
                    const std::int8_t* queries, std::size_t steps, const std::int32_t* starts,
                    std::int32_t* sums) {
    int32x4_t all = vdupq_n_s32(-1);
    for (std::size_t g = 0; g < kGroupsTogether; ++g, group += group_bytes) {
      int32x4_t sum[kQueries][kQuarters];
#pragma GCC unroll 4
      for (std::size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
        for (std::size_t quarter = 0; quarter < kQuarters; ++quarter)
          sum[q][quarter] = vdupq_n_s32(starts[q]);
      }
      for (std::size_t step = 0; step < steps; ++step) {
        codes.AtStep(group, step);
        const std::int8_t* step_queries = queries + step * kTileQueries * 64;
        for (std::size_t sixteen = 0; sixteen < 4; ++sixteen) {
          int8x16_t query[kQueries];
#pragma GCC unroll 4
          for (std::size_t q = 0; q < kQueries; ++q)
            query[q] = vld1q_s8(step_queries + q * 64 + sixteen * 16);
          const std::size_t pair = step * 8 + sixteen * 2;
          AddFour<0>(codes, group, pair, 0, query, sum);
          AddFour<1>(codes, group, pair, 1, query, sum);
          AddFour<2>(codes, group, pair + 1, 0, query, sum);
          AddFour<3>(codes, group, pair + 1, 1, query, sum);
        }
      }
      // Only hits have sums that are not negative, so the AND of all sums has a clear sign bit if
      // there is a hit.
#pragma GCC unroll 4
      for (std::size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
        for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
          all = vandq_s32(all, sum[q][quarter]);
          vst1q_s32(sums + (q * kGroupsTogether + g) * kGroupRows + quarter * 4, sum[q][quarter]);
        }
      }
    }
    return vmaxvq_s32(all) >= 0;
  }

  static void Append(const std::int32_t* sums, std::uint32_t first_pair, HitList& hits) {
    const auto is_hit = [sums](std::size_t quarter) {
      return vmovn_u32(vcgezq_s32(vld1q_s32(sums + quarter * 4)));
    };
    constexpr std::uint8_t kBits[] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x8_t bits = vld1_u8(kBits);
    const uint8x8_t low = vmovn_u16(vcombine_u16(is_hit(0), is_hit(1)));
    const uint8x8_t high = vmovn_u16(vcombine_u16(is_hit(2), is_hit(3)));
    AppendBits(vaddv_u8(vand_u8(low, bits)) | static_cast<unsigned>(vaddv_u8(vand_u8(high, bits)))
                                                  << 8,
               sums, first_pair, hits);
  }

 private:
  // Adds the products of four columns: the kFour-th of each query's sixteen.
  template <int kFour, std::size_t kQueries, class Codes>
  static void AddFour(const Codes& codes, const std::uint8_t* group, std::size_t pair,
                      std::size_t half, const int8x16_t (&query)[kQueries],
                      int32x4_t (&sum)[kQueries][kQuarters]) {
    int8x16_t rows[kQuarters];
#pragma GCC unroll 4
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter)
      rows[quarter] = codes.Load(group, pair, half, quarter);
#pragma GCC unroll 4
    for (std::size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
      for (std::size_t quarter = 0; quarter < kQuarters; ++quarter)
        sum[q][quarter] = vdotq_laneq_s32(sum[q][quarter], rows[quarter], query[q], kFour);
    }
  }
};

using Walk = Int8Walk<NeonDotProducts>;

// The starts of a block's queries, raised by what reading row bytes as signed subtracts from the
// sums. Sums wrap around, so only the final values must fit.
void BiasedStarts(const BlockScan& block, std::int32_t* starts) {
  for (std::size_t q = 0; q < block.query_count; ++q) {
    const std::int8_t* codes =
        block.queries + q / kTileQueries * kTileQueries * block.code_dim + q % kTileQueries * 64;
    int32x4_t sum = vdupq_n_s32(0);
    for (std::size_t column = 0; column < block.code_dim; column += 16) {
      const std::int8_t* sixteen = codes + column / 64 * kTileQueries * 64 + column % 64;
      sum = vdotq_s32(sum, vld1q_s8(sixteen), vdupq_n_s8(1));
    }
    const int32x2_t biased =
        vmla_n_s32(vdup_n_s32(block.starts[q]), vdup_n_s32(vaddvq_s32(sum)), kBias);
    starts[q] = vget_lane_s32(biased, 0);
  }
}

void Scan(const BlockScan& block) {
  // Behind the sums of a piece, which the walk keeps in the scratch.
  constexpr std::size_t kSums = kQueriesTogether * kRowsTogether;
  std::int32_t* starts = block.scratch + kSums;
  static_assert(ScratchBytes(1) >= (kSums + kTileQueries) * sizeof(std::int32_t));
  BiasedStarts(block, starts);
  BlockScan biased = block;
  biased.starts = starts;
  Walk::Scan(biased);
}

}  // namespace

const Int8Kernel kInt8NeonDot{"neondot", 0, true, 1U << 27, &Walk::Enter, &Walk::Leave, &Scan};

}  // namespace simile::backend::cpu

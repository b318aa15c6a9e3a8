// For processors without AVX2 and for other architectures: standard C++ only.
#include <bit>
#include <cmath>
#include <cstdint>

#include "certificate/canonical_kernels.h"

namespace simile::certificate {
namespace {

constexpr std::size_t kLanes = 32;

// fma(a, b, c) in fp32, correctly rounded. REQUIRES: finite arguments, no overflow.
inline float FusedMultiplyAdd(float a, float b, float c) {
#if defined(__FP_FAST_FMAF)
  return std::fma(a, b, c);  // one instruction here
#else
  // Without the instruction std::fma is a function call of hundreds of cycles for every element. In
  // double the product is exact (48 bits), and only the addition rounds. Rounding that to float
  // would be wrong where the first rounding fell on a midpoint, so the sum is rounded to odd
  // instead: if it is inexact and its last bit is 0, it moves one step towards the exact sum. 53 >=
  // 24 + 2 bits rounded to odd always round to the right float, subnormal or not (Boldo and
  // Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
  // odd", IEEE Trans. Computers 57(4), 2008).
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  const double sum = product + addend;
  const double addend_share = sum - product;  // Knuth's TwoSum: sum + error is exact
  const double error = (product - (sum - addend_share)) + (addend - addend_share);
  const auto sum_bits = std::bit_cast<std::uint64_t>(sum);
  const auto error_bits = std::bit_cast<std::uint64_t>(error);
  const std::uint64_t inexact_and_even =
      static_cast<std::uint64_t>(error != 0.0) & (~sum_bits & std::uint64_t{1});
  const std::uint64_t shrinks = (sum_bits ^ error_bits) >> 63;  // the error points towards zero
  const std::uint64_t odd_bits = sum_bits + inexact_and_even - 2 * (inexact_and_even & shrinks);
  return static_cast<float>(std::bit_cast<double>(odd_bits));
#endif
}

float ScorePair(const float* row, const float* query, std::size_t padded_dim) {
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < padded_dim; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = FusedMultiplyAdd(row[i + lane], query[i + lane], lanes[lane]);
    }
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0] + 0.0F;  // -0 becomes +0, nothing else changes (RankedScore)
}

}  // namespace

void ScoreBlockPortable(const float* rows, std::size_t row_count, const float* queries,
                        std::size_t query_count, std::size_t padded_dim, float* scores) {
  for (std::size_t row = 0; row < row_count; ++row) {
    for (std::size_t query = 0; query < query_count; ++query) {
      scores[query * row_count + row] =
          ScorePair(rows + row * padded_dim, queries + query * padded_dim, padded_dim);
    }
  }
}

void ScoreScatteredPortable(const float* const* rows, std::size_t row_count, const float* query,
                            std::size_t padded_dim, float* scores) {
  for (std::size_t row = 0; row < row_count; ++row) {
    scores[row] = ScorePair(rows[row], query, padded_dim);
  }
}

}  // namespace simile::certificate

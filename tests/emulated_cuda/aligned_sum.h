#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace emulated_cuda {

// How tensor cores add products of fp16 numbers to an fp32 sum (docs/design/tensor-core-sums.md,
// with sources): a block of products and the sum so far are cut, towards zero, to multiples of
// 2^-fraction_bits of the largest one's power of two; their sum is exact; it is cut to 24 bits.
struct SumRule {
  std::size_t block;
  int fraction_bits;
};
inline constexpr SumRule kVoltaSums{4, 23};    // loses the most
inline constexpr SumRule kAmpereSums{8, 24};   // Turing and Ada too
inline constexpr SumRule kHopperSums{16, 25};  // Blackwell too

// sum + products[0] + ... + products[count - 1], at most one block of them.
//   products  exact
inline float AddAligned(float sum, const double* products, std::size_t count, int fraction_bits) {
  const double start = static_cast<double>(sum);
  double plain = start, largest = std::abs(start);
  for (std::size_t i = 0; i < count; ++i) {
    plain += products[i];
    largest = std::abs(products[i]) > largest ? std::abs(products[i]) : largest;
  }
  if (largest == 0 || !std::isfinite(plain)) return static_cast<float>(plain);
  constexpr std::uint64_t kBias = 1'023;
  const std::uint64_t power = std::bit_cast<std::uint64_t>(largest) >> 52;  // with kBias
  const auto bits = static_cast<std::uint64_t>(fraction_bits);
  const auto steps_per_one = std::bit_cast<double>((2 * kBias + bits - power) << 52);
  const auto one_per_steps = std::bit_cast<double>((power - bits) << 52);
  auto steps = static_cast<std::int64_t>(start * steps_per_one);
  for (std::size_t i = 0; i < count; ++i) {
    steps += static_cast<std::int64_t>(products[i] * steps_per_one);
  }
  constexpr std::uint64_t kBelowFloat = (std::uint64_t{1} << 29) - 1;
  const double total = static_cast<double>(steps) * one_per_steps;
  return static_cast<float>(
      std::bit_cast<double>(std::bit_cast<std::uint64_t>(total) & ~kBelowFloat));
}

}  // namespace emulated_cuda

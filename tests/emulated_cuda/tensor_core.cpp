#include <cuda_fp16.h>

#include <array>
#include <cmath>
#include <cstring>

#include "emulated_cuda/device_state.h"

namespace emulated_cuda {
namespace {

struct MmaLane {
  const unsigned* a;
  const unsigned* b;
  const float* c;
  float* d;
};

float HalfOf(unsigned pair, int high) { return kHalfValues[pair >> (16 * high) & 0xFFFFU]; }

// Truncated to 24 bits: tensor cores drop the bits below a float's last one.
double Truncated(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits &= ~((std::uint64_t{1} << 29) - 1);
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

// sum + left . right. CUDA defines neither the order of the additions nor their rounding: an even
// seed rounds once, an odd one truncates after each addition.
float DotOfSixteen(float sum, const float* left, const float* right, std::uint64_t seed) {
  double total = sum;
  const bool truncates = seed % 2 == 1;
  const std::size_t first = seed / 2 % 16, step = seed / 32 % 8 * 2 + 1;
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t k = (first + i * step) % 16;
    total += static_cast<double>(left[k]) * right[k];
    if (truncates) total = Truncated(total);
  }
  return static_cast<float>(total);
}

void CompleteMma(void** lanes) {
  std::array<std::array<float, 16>, 16> left;
  std::array<std::array<float, 16>, 8> right;
  std::array<std::array<float, 8>, 16> sums;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if (lanes[lane] == nullptr) {
      DeviceFault(cudaErrorLaunchFailure, "lanes of an mma have ended");
    }
    const MmaLane& mine = *static_cast<const MmaLane*>(lanes[lane]);
    const std::size_t group = lane / 4, pair = lane % 4 * 2;
    for (int high = 0; high < 2; ++high) {
      const auto h = static_cast<std::size_t>(high);
      for (std::size_t r = 0; r < 4; ++r) {
        left[group + r % 2 * 8][pair + r / 2 * 8 + h] = HalfOf(mine.a[r], high);
      }
      for (std::size_t r = 0; r < 2; ++r) {
        right[group][pair + r * 8 + h] = HalfOf(mine.b[r], high);
        sums[group + r * 8][pair + h] = mine.c[r * 2 + h];
      }
    }
  }
  const std::uint64_t seed = State().options.seed;
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      sums[row][column] =
          DotOfSixteen(sums[row][column], left[row].data(), right[column].data(), seed);
    }
  }
  for (std::size_t lane = 0; lane < 32; ++lane) {
    float* const d = static_cast<const MmaLane*>(lanes[lane])->d;
    for (std::size_t r = 0; r < 4; ++r) d[r] = sums[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2];
  }
}

}  // namespace

void MmaM16N8K16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4],
                 int line) {
  MmaLane lane{a, b, c, d};
  WarpRendezvous(~0U, &lane, &CompleteMma, line);
}

}  // namespace emulated_cuda

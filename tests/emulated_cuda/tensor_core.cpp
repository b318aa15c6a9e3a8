#include <cuda_fp16.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "emulated_cuda/aligned_sum.h"
#include "emulated_cuda/device_state.h"

namespace emulated_cuda {
namespace {

struct MmaLane {
  const unsigned* a;
  const unsigned* b;
  const float* c;
  float* d;
};

using Sixteen = std::array<double, 16>;

double HalfOf(unsigned pair, unsigned high) {
  return static_cast<double>(kHalfValues[pair >> (16 * high) & 0xFFFFU]);
}

// sums[column] += left . right[column]. CUDA defines neither the order of the additions nor their
// rounding: an even seed rounds once, an odd one cuts as the tensor cores that lose the most do.
void AddProducts(const Sixteen& left, const std::array<Sixteen, 8>& right, std::uint64_t seed,
                 std::array<float, 8>& sums) {
  for (std::size_t column = 0; column < 8; ++column) {
    Sixteen products;
    for (std::size_t i = 0; i < 16; ++i) products[i] = left[i] * right[column][i];
    float& sum = sums[column];
    if (seed % 2 == 1) {
      constexpr SumRule kRule = kVoltaSums;
      for (std::size_t i = 0; i < 16; i += kRule.block) {
        sum = AddAligned(sum, products.data() + i, kRule.block, kRule.fraction_bits);
      }
    } else {
      double total = static_cast<double>(sum);
      for (const double product : products) total += product;
      sum = static_cast<float>(total);
    }
  }
}

void CompleteMma(void** lanes) {
  const std::uint64_t seed = State().options.seed;
  // The products' order, in which neighbours make a block.
  std::array<std::size_t, 16> place;
  for (std::size_t i = 0; i < 16; ++i) place[(seed / 2 + i * (seed / 32 % 8 * 2 + 1)) % 16] = i;
  std::array<Sixteen, 16> left;
  std::array<Sixteen, 8> right;
  std::array<std::array<float, 8>, 16> sums;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if (lanes[lane] == nullptr) {
      DeviceFault(cudaErrorLaunchFailure, "lanes of an mma have ended");
    }
    const MmaLane& mine = *static_cast<const MmaLane*>(lanes[lane]);
    const std::size_t group = lane / 4, pair = lane % 4 * 2;
    for (unsigned high = 0; high < 2; ++high) {
      for (std::size_t r = 0; r < 4; ++r) {
        left[group + r % 2 * 8][place[pair + r / 2 * 8 + high]] = HalfOf(mine.a[r], high);
      }
      for (std::size_t r = 0; r < 2; ++r) {
        right[group][place[pair + r * 8 + high]] = HalfOf(mine.b[r], high);
        sums[group + r * 8][pair + high] = mine.c[r * 2 + high];
      }
    }
  }
  for (std::size_t row = 0; row < 16; ++row) AddProducts(left[row], right, seed, sums[row]);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    float* const d = static_cast<const MmaLane*>(lanes[lane])->d;
    for (std::size_t r = 0; r < 4; ++r) d[r] = sums[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2];
  }
}

struct IntegerMmaLane {
  const unsigned* a;
  const unsigned* b;
  int* sums;
};

int ByteOf(unsigned four, std::size_t index) {
  return static_cast<std::int8_t>(four >> (8 * index) & 0xFFU);
}

void CompleteIntegerMma(void** lanes) {
  std::array<std::array<int, 32>, 16> left;
  std::array<std::array<int, 32>, 8> right;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if (lanes[lane] == nullptr) {
      DeviceFault(cudaErrorLaunchFailure, "lanes of an mma have ended");
    }
    const IntegerMmaLane& mine = *static_cast<const IntegerMmaLane*>(lanes[lane]);
    const std::size_t group = lane / 4, four = lane % 4 * 4;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t r = 0; r < 4; ++r) {
        left[group + r % 2 * 8][four + r / 2 * 16 + i] = ByteOf(mine.a[r], i);
      }
      for (std::size_t r = 0; r < 2; ++r) right[group][four + r * 16 + i] = ByteOf(mine.b[r], i);
    }
  }
  for (std::size_t lane = 0; lane < 32; ++lane) {
    int* const sums = static_cast<const IntegerMmaLane*>(lanes[lane])->sums;
    for (std::size_t r = 0; r < 4; ++r) {
      const std::array<int, 32>& row = left[lane / 4 + r / 2 * 8];
      sums[r] =
          std::inner_product(row.begin(), row.end(), right[lane % 4 * 2 + r % 2].begin(), sums[r]);
    }
  }
}

}  // namespace

int CodeCapability() {
  const Options& options = State().options;
  return options.code_capability != 0 ? options.code_capability : options.compute_capability;
}

void MmaM16N8K32(int (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2], int line) {
  IntegerMmaLane lane{a, b, sums};
  WarpRendezvous(~0U, &lane, &CompleteIntegerMma, line);
}

void MmaM16N8K16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4],
                 int line) {
  MmaLane lane{a, b, c, d};
  WarpRendezvous(~0U, &lane, &CompleteMma, line);
}

}  // namespace emulated_cuda

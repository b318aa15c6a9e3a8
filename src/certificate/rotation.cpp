#include "certificate/rotation.h"

#include <algorithm>
#include <cstdint>

#include "base/split_mix.h"

namespace simile::certificate {
namespace {

constexpr float kRoundFactor = 0.125F;  // 1 / sqrt(64), exactly

std::vector<float> Signs(std::size_t count, std::uint64_t seed) {
  std::vector<float> signs(count);
  for (float& sign : signs)
    sign = (base::NextSplitMix(seed) & 1) != 0 ? kRoundFactor : -kRoundFactor;
  return signs;
}

// One stage of butterflies: numbers kRun apart are replaced by their sum and difference. A run is
// the side-by-side numbers of as many consecutive columns as the stage pairs.
template <std::size_t kRun>
void Butterflies(float* block, std::size_t floats) {
  for (std::size_t start = 0; start < floats; start += 2 * kRun) {
    float* low = block + start;
    float* high = low + kRun;
    for (std::size_t i = 0; i < kRun; ++i) {
      const float sum = low[i] + high[i];
      high[i] = low[i] - high[i];
      low[i] = sum;
    }
  }
}

// The last two stages of a single vector, whose runs are too short for compilers to vectorise. They
// pair the numbers of each four neighbours, so that compilers can take four such groups side by
// side.
void ButterfliesOfFours(float* block) {
  for (std::size_t i = 0; i < kCodeStep; i += 4) {
    const float even_sum = block[i] + block[i + 2];
    const float odd_sum = block[i + 1] + block[i + 3];
    const float even_difference = block[i] - block[i + 2];
    const float odd_difference = block[i + 1] - block[i + 3];
    block[i] = even_sum + odd_sum;
    block[i + 1] = even_sum - odd_sum;
    block[i + 2] = even_difference + odd_difference;
    block[i + 3] = even_difference - odd_difference;
  }
}

template <std::size_t kCount>
void SignedHadamard(float* values, const float* signs, std::size_t rotated_dim) {
  for (std::size_t column = 0; column < rotated_dim; ++column) {
    for (std::size_t i = 0; i < kCount; ++i) values[column * kCount + i] *= signs[column];
  }
  for (std::size_t first = 0; first < rotated_dim; first += kCodeStep) {
    float* block = values + first * kCount;
    Butterflies<32 * kCount>(block, kCodeStep * kCount);
    Butterflies<16 * kCount>(block, kCodeStep * kCount);
    Butterflies<8 * kCount>(block, kCodeStep * kCount);
    Butterflies<4 * kCount>(block, kCodeStep * kCount);
    if constexpr (kCount == 1) {
      ButterfliesOfFours(block);
    } else {
      Butterflies<2 * kCount>(block, kCodeStep * kCount);
      Butterflies<1 * kCount>(block, kCodeStep * kCount);
    }
  }
}

}  // namespace

Rotation::Rotation(std::size_t dim)
    : dim_(dim),
      rotated_dim_(RotatedDim(dim)),
      first_signs_(Signs(rotated_dim_, 1)),
      second_signs_(Signs(rotated_dim_, 2)) {}

template <std::size_t kCount>
void Rotation::Rotate(float* values, float* scratch) const {
  SignedHadamard<kCount>(values, first_signs_.data(), rotated_dim_);
  const std::size_t blocks = rotated_dim_ / kCodeStep;
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t column = 0; column < kCodeStep; ++column) {
      std::copy_n(values + (block * kCodeStep + column) * kCount, kCount,
                  scratch + (column * blocks + block) * kCount);
    }
  }
  std::copy_n(scratch, rotated_dim_ * kCount, values);
  SignedHadamard<kCount>(values, second_signs_.data(), rotated_dim_);
}

template void Rotation::Rotate<1>(float* values, float* scratch) const;
template void Rotation::Rotate<kSideBySide>(float* values, float* scratch) const;

}  // namespace simile::certificate

#include "certificate/exact_rotation.h"

#include <algorithm>
#include <cmath>

namespace simile::tests {

using certificate::kSideBySide;
using certificate::Rotation;

long double ExactDot(std::span<const float> a, std::span<const float> b) {
  long double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<long double>(a[i]) * static_cast<long double>(b[i]);
  }
  return sum;
}

long double ExactLength(std::span<const float> vector) {
  return std::sqrt(ExactDot(vector, vector));
}

std::vector<float> Rotated(const Rotation& rotation, std::span<const float> vector) {
  std::vector<float> rotated(rotation.rotated_dim(), 0.0F);
  std::vector<float> scratch(rotated.size());
  std::copy(vector.begin(), vector.end(), rotated.begin());
  rotation.Rotate<1>(rotated.data(), scratch.data());
  return rotated;
}

ExactRotation::ExactRotation(const Rotation& rotation)
    : rotated_dim_(rotation.rotated_dim()), entries_(rotated_dim_ * rotated_dim_) {
  std::vector<float> columns(rotated_dim_ * kSideBySide);
  std::vector<float> scratch(columns.size());
  for (std::size_t first = 0; first < rotated_dim_; first += kSideBySide) {
    std::fill(columns.begin(), columns.end(), 0.0F);
    for (std::size_t i = 0; i < kSideBySide; ++i) columns[(first + i) * kSideBySide + i] = 1;
    rotation.Rotate<kSideBySide>(columns.data(), scratch.data());
    for (std::size_t row = 0; row < rotated_dim_; ++row) {
      for (std::size_t i = 0; i < kSideBySide; ++i) {
        entries_[(first + i) * rotated_dim_ + row] =
            static_cast<std::int8_t>(columns[row * kSideBySide + i] * 64);
      }
    }
  }
}

std::vector<long double> ExactRotation::Apply(std::span<const float> vector) const {
  std::vector<long double> rotated(rotated_dim_, 0.0L);
  for (std::size_t column = 0; column < vector.size(); ++column) {
    const std::span<const std::int8_t> entries = Column(column);
    const long double share = static_cast<long double>(vector[column]) / 64;
    if (share == 0) continue;
    for (std::size_t row = 0; row < rotated_dim_; ++row) rotated[row] += share * entries[row];
  }
  return rotated;
}

std::vector<long double> ExactRotation::ApplyInverse(std::span<const long double> rotated) const {
  std::vector<long double> vector(rotated_dim_);
  for (std::size_t column = 0; column < rotated_dim_; ++column) {
    const std::span<const std::int8_t> entries = Column(column);
    long double sum = 0;
    for (std::size_t row = 0; row < rotated_dim_; ++row) sum += rotated[row] * entries[row];
    vector[column] = sum / 64;
  }
  return vector;
}

}  // namespace simile::tests

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "certificate/rotation.h"

namespace simile::tests {

long double ExactDot(std::span<const float> a, std::span<const float> b);
long double ExactLength(std::span<const float> vector);

// One vector of dim() numbers, rotated by a Rotation.
std::vector<float> Rotated(const certificate::Rotation& rotation, std::span<const float> vector);

// The orthogonal map R that a Rotation computes with rounding, found by rotating unit vectors:
// every intermediate number is a small multiple of 1/64 and exact. R is applied in long double, as
// the reference.
class ExactRotation {
 public:
  explicit ExactRotation(const certificate::Rotation& rotation);

  std::size_t rotated_dim() const { return rotated_dim_; }
  // R's column times 64, which is whole numbers.
  std::span<const std::int8_t> Column(std::size_t column) const {
    return std::span(entries_).subspan(column * rotated_dim_, rotated_dim_);
  }
  // R x, for up to rotated_dim() numbers; missing ones are zero.
  std::vector<long double> Apply(std::span<const float> vector) const;
  // R^T z
  std::vector<long double> ApplyInverse(std::span<const long double> rotated) const;

 private:
  std::size_t rotated_dim_;
  std::vector<std::int8_t> entries_;  // [column, rotated_dim]
};

}  // namespace simile::tests

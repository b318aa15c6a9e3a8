#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace simile::certificate {

// Columns that one step of the int8 product takes; rotated vectors are padded to whole steps.
inline constexpr std::size_t kCodeStep = 64;

constexpr std::size_t RotatedDim(std::size_t dim) {
  return (dim + kCodeStep - 1) / kCodeStep * kCodeStep;
}

// How many vectors are rotated side by side. One column of all of them is contiguous, so that
// compilers vectorise every step.
inline constexpr std::size_t kSideBySide = 16;

// An orthogonal map that spreads each vector's length evenly over its coordinates, so that a byte a
// coordinate loses little. Vectors of `dim` numbers are extended with zeros to RotatedDim(dim):
//
//   signs, Hadamard on each 64 neighbours, transposition of [blocks][64] to [64][blocks], signs,
//   Hadamard again
//
// (the randomised Hadamard transform of Ailon and Chazelle, "The Fast Johnson-Lindenstrauss
// Transform", SIAM J. Comput. 39(1), 2009, in blocks). Its factor is 1/8 a round, a power of two,
// so the map is exactly orthogonal and keeps dot products. Only the sums are rounded; see
// kRotationError. All instruction sets give the same bits. Immutable; safe to share between
// threads.
class Rotation {
 public:
  // REQUIRES: dim >= 1.
  explicit Rotation(std::size_t dim);

  std::size_t dim() const { return dim_; }
  std::size_t rotated_dim() const { return rotated_dim_; }
  // The factors of the first and the second round, +-1/8.
  std::span<const float> first_signs() const { return first_signs_; }
  std::span<const float> second_signs() const { return second_signs_; }

  // Rotates kCount vectors side by side, in place.
  //   values   [rotated_dim, kCount]  columns dim() and up are zero
  //   scratch  [rotated_dim, kCount]  overwritten
  // Cost: 12 additions a number. kCount is 1 or kSideBySide.
  template <std::size_t kCount>
  void Rotate(float* values, float* scratch) const;

 private:
  std::size_t dim_;
  std::size_t rotated_dim_;
  std::vector<float> first_signs_;   // +-1/8
  std::vector<float> second_signs_;  // +-1/8
};

// The greatest distance of a computed rotation from the exact one, as a share of the vector's
// length: each of the 12 stages of sums rounds every number by at most u = 2^-24 of itself, and no
// stage changes the length. The thirteenth u covers the terms of second order of the twelve and the
// underflow of numbers below 2^-126. Both are smaller by many orders for lengths from 2^-60. A
// vector of zeros is rotated exactly.
inline constexpr double kRotationError = 13 * 0x1p-24;

}  // namespace simile::certificate

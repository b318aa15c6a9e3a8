#include "certificate/rotation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <vector>

#include "certificate/exact_rotation.h"
#include "certificate/seeded_random.h"

namespace simile::certificate {
namespace {

using tests::ExactDot;
using tests::ExactLength;
using tests::ExactRotation;
using tests::Rotated;
using tests::SeededRandom;

constexpr std::size_t kDims[] = {1, 63, 64, 65, 384, 1536, 4096};

enum class Kind : std::size_t {
  kUniform,
  kOneSign,
  kOneHot,
  kWildElements,
  kMostlySubnormal,
  kTiny,  // length near 2^-60
  kHuge,  // length near 2^60
  kCount
};

std::vector<float> Draw(Kind kind, std::size_t dim, SeededRandom& random) {
  std::vector<float> vector(dim);
  for (float& value : vector) {
    value = random.Signed();
    if (kind == Kind::kOneSign) value = std::fabs(value);
    if (kind == Kind::kOneHot) value = 0;
    if (kind == Kind::kWildElements) value = random.Wild(-140, 0);
    if (kind == Kind::kMostlySubnormal) value = random.Subnormal();
  }
  vector[random.Below(dim)] = 1;  // lengths stay within the permitted range
  const float unit = kind == Kind::kTiny ? 0x1p-60F : (kind == Kind::kHuge ? 0x1p54F : 1.0F);
  for (float& value : vector) value *= unit;
  return vector;
}

TEST(RotationTest, IsOrthogonalExactly) {
  constexpr std::uint64_t kSeed = 5;
  SeededRandom random(kSeed);
  for (const std::size_t dim : kDims) {
    const ExactRotation exact{Rotation(dim)};
    const std::size_t rotated_dim = exact.rotated_dim();
    ASSERT_EQ(rotated_dim, (dim + 63) / 64 * 64);
    // All pairs of columns where they are few, else a random part of them.
    const std::size_t all = rotated_dim * rotated_dim;
    const std::size_t pairs = std::min<std::size_t>(all, 20'000);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const std::size_t chosen = pairs == all ? pair : random.Below(all);
      // Every column is compared with itself too.
      const std::size_t a = pair < rotated_dim ? pair : chosen / rotated_dim;
      const std::size_t b = pair < rotated_dim ? pair : chosen % rotated_dim;
      std::int32_t dot = 0;
      for (std::size_t i = 0; i < rotated_dim; ++i) dot += exact.Column(a)[i] * exact.Column(b)[i];
      ASSERT_EQ(dot, a == b ? 64 * 64 : 0) << "dim " << dim << ", columns " << a << " and " << b;
    }
  }
}

TEST(RotationTest, SpreadsEveryUnitVector) {
  for (const std::size_t dim : kDims) {
    const ExactRotation exact{Rotation(dim)};
    for (std::size_t column = 0; column < exact.rotated_dim(); ++column) {
      int largest = 0;
      for (const std::int8_t entry : exact.Column(column))
        largest = std::max(largest, std::abs(entry));
      ASSERT_LE(largest, 32) << "half of a unit vector stays in one place: dim " << dim
                             << ", column " << column;
    }
  }
}

TEST(RotationTest, StaysWithinItsErrorOfTheExactMap) {
  constexpr std::uint64_t kSeed = 6;
  SeededRandom random(kSeed);
  long double largest_share = 0;
  for (const std::size_t dim : kDims) {
    const Rotation rotation(dim);
    const ExactRotation exact(rotation);
    const std::size_t draws = dim > 1'000 ? 1 : 20;
    for (std::size_t draw = 0; draw < draws * static_cast<std::size_t>(Kind::kCount); ++draw) {
      const auto kind = static_cast<Kind>(draw % static_cast<std::size_t>(Kind::kCount));
      const std::vector<float> vector = Draw(kind, dim, random);
      const std::vector<float> rotated = Rotated(rotation, vector);
      const std::vector<long double> expected = exact.Apply(vector);
      long double squares = 0;
      for (std::size_t i = 0; i < rotated.size(); ++i) {
        const long double off = static_cast<long double>(rotated[i]) - expected[i];
        squares += off * off;
      }
      const long double share = std::sqrt(squares) / (kRotationError * ExactLength(vector));
      ASSERT_LE(share, 1) << "seed " << kSeed << ", dim " << dim << ", draw " << draw;
      largest_share = std::max(largest_share, share);
    }
  }
  std::printf("at most %.3Lf of kRotationError, seed %llu\n", largest_share,
              static_cast<unsigned long long>(kSeed));
  EXPECT_GT(largest_share, 0.02);
}

TEST(RotationTest, KeepsLengthsAndDotProducts) {
  constexpr std::uint64_t kSeed = 7;
  SeededRandom random(kSeed);
  for (const std::size_t dim : kDims) {
    const Rotation rotation(dim);
    for (std::size_t draw = 0; draw < 200; ++draw) {
      const auto kind = [&] {
        return static_cast<Kind>(random.Below(static_cast<std::size_t>(Kind::kCount)));
      };
      const std::vector<float> a = Draw(kind(), dim, random);
      const std::vector<float> b = Draw(kind(), dim, random);
      const std::vector<float> rotated_a = Rotated(rotation, a);
      const std::vector<float> rotated_b = Rotated(rotation, b);
      const long double length_a = ExactLength(a);
      const long double length_b = ExactLength(b);
      constexpr long double kError = kRotationError;
      ASSERT_LE(std::fabs(ExactLength(rotated_a) - length_a), kError * length_a)
          << "seed " << kSeed << ", dim " << dim << ", draw " << draw;
      ASSERT_LE(std::fabs(ExactDot(rotated_a, rotated_b) - ExactDot(a, b)),
                (2 * kError + kError * kError) * length_a * length_b)
          << "seed " << kSeed << ", dim " << dim << ", draw " << draw;
    }
  }
}

TEST(RotationTest, FollowsSignsAndPowersOfTwoExactly) {
  constexpr std::uint64_t kSeed = 8;
  SeededRandom random(kSeed);
  for (const std::size_t dim : kDims) {
    const Rotation rotation(dim);
    std::vector<float> vector = Draw(Kind::kUniform, dim, random);
    const std::vector<float> rotated = Rotated(rotation, vector);
    for (float& value : vector) value *= -4;
    const std::vector<float> changed = Rotated(rotation, vector);
    for (std::size_t i = 0; i < rotated.size(); ++i) {
      ASSERT_EQ(changed[i], -4 * rotated[i]) << "seed " << kSeed << ", dim " << dim << ", at " << i;
    }
  }
}

TEST(RotationTest, LeavesZerosZero) {
  for (const std::size_t dim : kDims) {
    for (const float value : Rotated(Rotation(dim), std::vector<float>(dim, 0.0F))) {
      ASSERT_EQ(value, 0) << "dim " << dim;
    }
  }
}

TEST(RotationTest, RotatesSideBySideAsItRotatesOne) {
  constexpr std::uint64_t kSeed = 9;
  SeededRandom random(kSeed);
  for (const std::size_t dim : kDims) {
    const Rotation rotation(dim);
    std::vector<float> columns(rotation.rotated_dim() * kSideBySide, 0.0F);
    std::vector<float> scratch(columns.size());
    std::vector<std::vector<float>> vectors;
    for (std::size_t i = 0; i < kSideBySide; ++i) {
      vectors.push_back(
          Draw(static_cast<Kind>(i % static_cast<std::size_t>(Kind::kCount)), dim, random));
      for (std::size_t column = 0; column < dim; ++column)
        columns[column * kSideBySide + i] = vectors[i][column];
    }
    rotation.Rotate<kSideBySide>(columns.data(), scratch.data());
    for (std::size_t i = 0; i < kSideBySide; ++i) {
      const std::vector<float> alone = Rotated(rotation, vectors[i]);
      for (std::size_t column = 0; column < alone.size(); ++column) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(columns[column * kSideBySide + i]),
                  std::bit_cast<std::uint32_t>(alone[column]))
            << "seed " << kSeed << ", dim " << dim << ", vector " << i << ", column " << column;
      }
    }
  }
}

}  // namespace
}  // namespace simile::certificate

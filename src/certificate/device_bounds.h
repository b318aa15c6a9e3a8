#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "simile/limits.h"

namespace simile::certificate {

// Cheap scores in fp16: rows and queries are scaled by powers of two to at most unit length,
// rounded to fp16, and multiplied with fp32 sums on tensor cores (docs/design/gpu-engine.md).

// The longest vector that counts as unit length; rounding to fp32 leaves one within 2^-20.
inline constexpr double kUnitLengthMax = 1.0 + 0x1p-16;

// The greatest factor that turns a canonical score into units.
inline constexpr double kUnitsPerScoreMax = 4.0 / (kNormMin * kNormMin);

// The length of a vector, in double.
double Length(std::span<const float> vector);

// Copies a vector, and returns the sum of its squares in fp32, 16 sums side by side.
// REQUIRES: count is a multiple of 16.
float CopyAndSquare(const float* from, std::size_t count, float* to);
// Whether ChooseUnit is certainly 1 for a vector of `count` values with this sum of CopyAndSquare.
// May be false for lengths next to the limits.
bool UnitIsOne(float squares, std::size_t count);

// The power of two that scales a length into (1/2, 1]. 1 for lengths already in this range, for
// unit length with its rounding, and for 0.
//   length  0, or within kNormMin .. kNormMax
double ChooseUnit(double length);

// How a cheap score is stored.
enum class CheapStorage : std::uint8_t {
  kFloat,  // a sum that started at -gate, to which the gate was added again
  kHalf,   // rounded to fp16
};

// How far a cheap score may lie from the canonical score, both in units, for any query and any row:
//
//   |q.x - q'.x'| <= |q||x - x'| + |q - q'||x'|                     (Cauchy-Schwarz)
//
// plus the rounding of the sum: tensor cores truncate, so that each of at most 2 dim + 16 steps may
// lose 2^-23 of the magnitudes added, the gate's among them (a stated assumption, which a test
// attacks on a card; 1.25 dim steps are derived for the cards that lose the most:
// docs/design/tensor-core-sums.md); plus what storing the score takes, and the canonical score's
// own rounding.
// REQUIRES: rows and queries no longer than kUnitLengthMax, in units.
//   padded_dim     of the fp16 rows
//   row_residual   the greatest |x - x'| of any row, measured
//   gate_max       the greatest magnitude of a gate
// Rounded up.
float Fp16Bound(std::size_t padded_dim, double row_residual, double gate_max, CheapStorage storage);

// Cheap scores of the GPU from rows of a byte a dimension. Rows and queries, scaled by powers of
// two to at most unit length, are rotated (rotation.h); each row has its own scale s, the one with
// the least residual |y - x'| for x' = s * codes. So y - x' is perpendicular to x', except for the
// rounding of s. A query's codes have 15 bits. With q' for the decoded query and R for the
// rotation,
//
//   canonical - q'.x'  <=  |R q|_perpendicular |y - x'| + |R q - q'| |x'|
//                          + (rounding of s, of two rotations and of the canonical score) |q|
//
// Only the part of R q that is perpendicular to x' meets the residual. kernels/int8_gate.cuh, which
// runs on the device alone, forms a gate from these bounds (docs/design/gpu-engine.md, "int8").

// Upper bounds for all rows of a collection.
struct Int8Limits {
  float decoded = 0;     // |x'|
  float residual = 0;    // |y - x'|
  float per_length = 0;  // the part of the bound that depends on |q| alone, for each unit of |q|
  float rest = 0;        // the constant part of the bound
};

//   decoded, residual  the greatest of any row, measured, rounded up
// Rounded up.
Int8Limits MakeInt8Limits(std::size_t padded_dim, float decoded, float residual);

}  // namespace simile::certificate

#pragma once

#include <cstddef>

namespace simile::certificate {

// Cheap scores of the GPU from rows of a byte a dimension. Rows and queries, scaled by powers of
// two to at most unit length, are rotated (rotation.h); a row's codes have a scale s of their own,
// the one with the least residual |y - x'| for x' = s * codes, so that y - x' is perpendicular to
// x' but for the rounding of s. A query's codes have 15 bits. With q' for what they give, and the
// rotation R,
//
//   canonical - q'.x'  <=  |R q|_perpendicular |y - x'| + |R q - q'| |x'|
//                          + (rounding of s, of two rotations and of the canonical score) |q|
//
// where only the part of R q that is perpendicular to x' meets the residual: kernels/int8_gate.cuh
// forms a gate of that from what is here and is the device's alone
// (docs/design/gpu-engine.md, "int8").

// Upper bounds for all rows of a collection.
struct Int8Limits {
  float decoded = 0;     // |x'|
  float residual = 0;    // |y - x'|
  float per_length = 0;  // of the bound that no row changes, for each unit of |q|
  float rest = 0;        // of the same, for every query
};

//   decoded, residual  the greatest of any row, measured, rounded up
// Rounded up.
Int8Limits Int8LimitsOf(std::size_t padded_dim, float decoded, float residual);

}  // namespace simile::certificate

#pragma once

// The arguments of the int8 scan in addition to a pass: rows of a byte a dimension, and buffers for
// the queries.

namespace simile::kernels {

// Upper bounds for all rows of a segment, in units (certificate::Int8Limits).
struct Int8Limits {
  float decoded;     // |x'|, the length of a decoded row
  float residual;    // |y - x'|, of the rotated row
  float per_length;  // the part of the bound that depends on |q| alone, for a query of length 1
  float rest;        // the constant part of the bound
};

// A row: x' is `scale` times its codes.
struct alignas(8) Int8Row {
  float scale;
  float residual;  // |y - x'|, or more
};

// A query: `scale` times (128 times the codes of its high plane plus the codes of its low plane).
struct Int8Query {
  float scale;
  float length;  // |q|, or more
  float margin;  // the part of the bound that does not depend on the row
};

struct Int8Rows {
  const signed char* codes = nullptr;  // [row_count][stride] at positions
  const Int8Row* rows = nullptr;       // [row_count] at positions
  const float* signs = nullptr;        // [2][stride] of the rotation
  unsigned stride = 0;                 // a multiple of 64, at most kInt8StrideMax
  Int8Limits limits = {};
  float caution = 0;              // the share of the bound by which the sample's scores are lowered
  signed char* planes = nullptr;  // [batch][2][stride] scratch
  Int8Query* queries = nullptr;   // [batch] scratch
};

inline constexpr unsigned kInt8StrideMax = 4'096;

}  // namespace simile::kernels

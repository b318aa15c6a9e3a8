#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "simile/matrix_view.h"

namespace simile::certificate {

// The canonical score of two vectors: their fp32 dot product in one fixed order, so that every
// backend and instruction set returns the same bits.
//
//   lane l (0..31) starts at +0 and, for i = l, l+32, l+64, ... in turn, becomes
//   fma(a[i], b[i], lane); then lane l += lane l+16 for l < 16, the same for 8, 4, 2 and 1; lane 0
//   is the score
//
// Rows are padded with +0 to whole lanes, which changes no bit of a finite score but the sign of a
// zero; RankedScore() removes that. For vectors of length |a|, |b| the score differs from the exact
// dot product by at most gamma_n |a||b| with n = ceil(dim/32) + 5 and gamma_n = n u / (1 - n u),
// u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1, applied
// per lane and to the five levels of the tree), plus dim * 2^-149 for underflow.
//
// Flush-to-zero and denormals-are-zero must be off in the calling thread (they are by default).

// Canonical scores by one instruction set. All give the same bits.
struct CanonicalKernel {
  std::string_view isa;  // "avx512", "avx2", "neon", "portable"

  // Scores of `row_count` consecutive rows against `query_count` consecutive queries.
  //   rows     [row_count, padded_dim]    fp32, 4-byte aligned or better
  //   queries  [query_count, padded_dim]
  //   scores   [query_count, row_count]   written; scores[q * row_count + r], never -0
  // REQUIRES: padded_dim is a multiple of 32.
  // Cost: row_count * query_count * padded_dim fused multiply-adds; the caller passes row blocks
  // that stay in cache for all queries.
  void (*score_block)(const float* rows, std::size_t row_count, const float* queries,
                      std::size_t query_count, std::size_t padded_dim, float* scores);

  // Scores of rows at any addresses against one query. Four rows cost little more than one. Row and
  // query may be exchanged: the score has the same bits.
  //   rows    [row_count]  where each begins: [padded_dim], aligned as above
  //   scores  [row_count]  written; never -0
  // REQUIRES: padded_dim is a multiple of 32.
  void (*score_scattered)(const float* const* rows, std::size_t row_count, const float* query,
                          std::size_t padded_dim, float* scores);
};

// The kernels this processor can run, fastest first; the last is always "portable".
std::span<const CanonicalKernel* const> SupportedCanonicalKernels();

// The kernel with this name, or nullptr when there is none or this processor cannot run it.
const CanonicalKernel* FindCanonicalKernel(std::string_view isa);

// The definition above, one operation at a time: the oracle of all tests.
//   a, b  equally long, unpadded
float CanonicalScoreReference(std::span<const float> a, std::span<const float> b);

// The bound above: the greatest difference between a canonical score and the exact dot product of
// vectors with these lengths.
double CanonicalScoreError(std::size_t dim, double norm_a, double norm_b);

// How far the canonical score of two equal vectors may be from 1, their cosine. A vector is brought
// to unit length in double; then each number is rounded to fp32, which changes the length by at
// most u = 2^-24. The error of CanonicalScoreError is added.
double CosineRounding(std::size_t dim);

// The threshold that canonical scores of a cosine collection are compared with, lowered so that
// rounding hides no row. A threshold above 1 - CosineRounding finds all equal rows. A threshold of
// at most -1 finds every row. Any other threshold is unchanged. The result is never above
// `threshold` and rises with it.
//   returns  -infinity for no threshold
float CosineThreshold(float threshold, std::size_t dim);

}  // namespace simile::certificate

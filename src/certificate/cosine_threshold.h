#pragma once

#include <cstddef>

namespace simile::certificate {

// How far the canonical score of two equal vectors may be from 1, their cosine. A vector is brought
// to unit length in double, and each of its numbers is then rounded to fp32, which changes its
// length by at most u = 2^-24; the score has the error of CanonicalScoreError besides.
double CosineRounding(std::size_t dim);

// The threshold that the canonical scores of a cosine collection are compared with, so that their
// rounding hides no row: within CosineRounding of 1 or above it, it finds all equal rows; at -1 and
// below it finds every row. Any other threshold is compared as it is. Never above `threshold`, and
// rising with it.
//   returns  -infinity for no threshold
float CosineThreshold(float threshold, std::size_t dim);

}  // namespace simile::certificate

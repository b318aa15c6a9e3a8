#pragma once

#include <cstddef>
#include <cstdint>

#include "certificate/canonical_score.h"

namespace simile::tests {

// Compares score_block, and score_scattered for one query of each block, with
// CanonicalScoreReference, bit for bit, on at least pair_count random (row, query) pairs: dims 1 to
// 4096, odd ones and tile edges among them, blocks of 1 to 9 rows and 1 to 8 queries, misaligned;
// uniform, wild exponents, subnormals, products that underflow, cancellation, one-hot and signed
// zeros. Stops at the first difference and prints its seed.
void ExpectReferenceBits(const certificate::CanonicalKernel& kernel, std::uint64_t seed,
                         std::size_t pair_count);

}  // namespace simile::tests

// Checks canonical_score_avx512.cpp on processors without AVX-512: compiled with SIMD Everywhere's
// portable versions of the 512-bit intrinsics. It proves the algorithm (order of additions, tails,
// tiles), not the machine code; CanonicalKernelTest proves that where the processor has AVX-512.
#include <gtest/gtest.h>

#include "certificate/pair_battery.h"

namespace simile::certificate {

// ScoreBlockAvx512 and ScoreScatteredAvx512 under the names that CMakeLists.txt gives them here.
void ScoreBlockAvx512Emulated(const float* rows, std::size_t row_count, const float* queries,
                              std::size_t query_count, std::size_t padded_dim, float* scores);
void ScoreScatteredAvx512Emulated(const float* const* rows, std::size_t row_count,
                                  const float* query, std::size_t padded_dim, float* scores);

namespace {

TEST(EmulatedAvx512Test, HasTheReferencesBitsOnAMillionPairs) {
  if (FindCanonicalKernel("avx2") == nullptr) {
    GTEST_SKIP() << "the emulation of AVX-512 runs on AVX2, which this processor lacks";
  }
  ::simile::tests::ExpectReferenceBits(
      {"avx512-simde", &ScoreBlockAvx512Emulated, &ScoreScatteredAvx512Emulated}, 20'240'502,
      1'000'000);
}

}  // namespace
}  // namespace simile::certificate

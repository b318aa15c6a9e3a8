#pragma once

// The functions of every instruction set; CanonicalKernel in canonical_score.h is their contract.
//
// The files that define them are each compiled with their own instruction-set flags, and the linker
// keeps only one copy of an inline function for the whole program. If such a file emitted a copy
// of, say, a std::string_view constructor, its AVX-512 version might be the one kept, and the
// program would crash on older processors. So those files include nothing but this header,
// tile_walk.h, row_sums.h and the intrinsics, and define everything else in an unnamed namespace.

#include <cstddef>

namespace simile::certificate {

void ScoreBlockPortable(const float* rows, std::size_t row_count, const float* queries,
                        std::size_t query_count, std::size_t padded_dim, float* scores);
void ScoreScatteredPortable(const float* const* rows, std::size_t row_count, const float* query,
                            std::size_t padded_dim, float* scores);

#if defined(__x86_64__)
void ScoreBlockAvx2(const float* rows, std::size_t row_count, const float* queries,
                    std::size_t query_count, std::size_t padded_dim, float* scores);
void ScoreScatteredAvx2(const float* const* rows, std::size_t row_count, const float* query,
                        std::size_t padded_dim, float* scores);
void ScoreBlockAvx512(const float* rows, std::size_t row_count, const float* queries,
                      std::size_t query_count, std::size_t padded_dim, float* scores);
void ScoreScatteredAvx512(const float* const* rows, std::size_t row_count, const float* query,
                          std::size_t padded_dim, float* scores);
#elif defined(__aarch64__)
void ScoreBlockNeon(const float* rows, std::size_t row_count, const float* queries,
                    std::size_t query_count, std::size_t padded_dim, float* scores);
void ScoreScatteredNeon(const float* const* rows, std::size_t row_count, const float* query,
                        std::size_t padded_dim, float* scores);
#endif

}  // namespace simile::certificate

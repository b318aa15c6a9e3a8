#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "certificate/padded_rows.h"

namespace simile::tests {

// The data of an attack on the certificate. Each family is one way to make cheap and canonical
// scores, or their bounds, differ as much as possible.
enum class Family : std::size_t {
  kUniform,
  kNearTies,  // thousands of scores within 1e-6
  kDuplicates,
  kAllEqual,
  kOneHot,
  kSubnormalElements,
  kWildNorms,     // 2^-60 to 2^60
  kWildElements,  // exponents from 2^-120 up in one vector
  kOneSign,       // all of one sign, so that roundings add up
  kAlignedRows,   // the residuals of rows are parallel to the query
  kAlignedBoth,   // and the query's residual is parallel to the rows
  kCount
};

// Rows, queries and how to quantize them; all of it a function of the seed.
struct CertificateCase {
  std::uint64_t seed = 0;
  Family family = Family::kUniform;
  std::string description;  // for the message of a failure
  std::size_t dim = 0;
  std::int32_t code_max = 0;
  std::size_t block_rows = 0;  // rows that share a scale
  float scale_factor = 1;      // times the scale that just fits: any scale must be safe
  std::size_t k = 0;
  std::unique_ptr<PaddedRows> rows;
  std::unique_ptr<PaddedRows> queries;
};

inline constexpr std::uint64_t kSeedsPerFamily = 1'000'000;

inline std::uint64_t FindFirstSeed(Family family) {
  return static_cast<std::uint64_t>(family) * kSeedsPerFamily;
}
inline Family ToFamily(std::uint64_t seed) { return static_cast<Family>(seed / kSeedsPerFamily); }
const char* NameOf(Family family);

// Dims 1 to 4096, 1 to 4000 rows, 1 to 3 queries, mostly small.
CertificateCase MakeCertificateCase(std::uint64_t seed);

}  // namespace simile::tests

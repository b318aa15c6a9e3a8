// Attacks the certificate as a whole: rotates and quantizes vectors, forms the product of codes and
// checks in long double that the canonical score lies within the bound of it, and that no threshold
// drops a row that reaches it.
//
// A failure prints the case's seed; SIMILE_CERTIFICATE_SEED=<seed> runs that case alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <ostream>
#include <utility>
#include <vector>

#include "certificate/canonical_score.h"
#include "certificate/certificate_case.h"
#include "certificate/exact_rotation.h"
#include "certificate/quantizer.h"
#include "certificate/rotation.h"
#include "certificate/score_bound.h"
#include "certificate/seeded_random.h"
#include "simile/rank_key.h"

namespace simile::tests {

void PrintTo(Family family, std::ostream* out) { *out << NameOf(family); }

namespace {

using certificate::Int4Codes;
using certificate::QuantizedNorms;
using certificate::QuantizedSquares;
using certificate::Rotation;
using certificate::ScoreBound;

constexpr std::uint64_t kCasesPerFamily = 600;

// A vector as the first stage sees it.
struct Quantized {
  std::vector<std::int8_t> codes;
  float scale = 0;
  QuantizedNorms norms;
};

float FindLargest(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

Quantized QuantizeOne(const std::vector<float>& rotated, float scale, std::int32_t code_max) {
  Quantized quantized;
  quantized.codes.resize(rotated.size());
  quantized.scale = scale;
  QuantizedSquares squares;
  double length_squared = 0;
  certificate::Quantize<1>(rotated.data(), rotated.size(), scale, code_max, quantized.codes.data(),
                           &squares);
  certificate::SquaredLengths<1>(rotated.data(), rotated.size(), &length_squared);
  quantized.norms = certificate::BoundNorms(length_squared, squares);
  return quantized;
}

Quantized QuantizeInt4(const std::vector<float>& rotated, float scale,
                       const Int4Codes& int4_codes) {
  std::vector<float> side_by_side(rotated.size() * certificate::kSideBySide);
  for (std::size_t i = 0; i < side_by_side.size(); ++i)
    side_by_side[i] = rotated[i / certificate::kSideBySide];
  std::vector<std::uint8_t> int4(side_by_side.size());
  std::array<QuantizedSquares, certificate::kSideBySide> squares;
  int4_codes.Quantize(side_by_side.data(), rotated.size(), scale, int4.data(), squares.data());
  double length_squared = 0;
  certificate::SquaredLengths<1>(rotated.data(), rotated.size(), &length_squared);
  Quantized quantized;
  for (std::size_t i = 0; i < int4.size(); i += certificate::kSideBySide)
    quantized.codes.push_back(int4_codes.code(int4[i]));
  quantized.scale = scale;
  quantized.norms = certificate::BoundNorms(length_squared, squares.front());
  return quantized;
}

using RotatedBlock = std::vector<std::vector<float>>;

std::vector<Quantized> QuantizeBlock(const CertificateCase& drawn, const RotatedBlock& rotated) {
  float largest = 0;
  for (const std::vector<float>& row : rotated) largest = std::max(largest, FindLargest(row));
  const float scale = certificate::ScaleFor(largest, drawn.code_max) * drawn.scale_factor;
  std::vector<Quantized> quantized;
  QuantizedNorms of_block;
  for (const std::vector<float>& row : rotated) {
    quantized.push_back(QuantizeOne(row, scale, drawn.code_max));
    of_block.Include(quantized.back().norms);
  }
  for (Quantized& row : quantized) row.norms = of_block;
  return quantized;
}

// By the sixteen int4 codes, each row with its own residual.
std::vector<Quantized> QuantizeInt4Block(const CertificateCase& drawn,
                                         const RotatedBlock& rotated) {
  const Int4Codes int4_codes(drawn.code_max);
  double square = 0;
  for (const std::vector<float>& row : rotated) {
    double length_squared = 0;
    certificate::SquaredLengths<1>(row.data(), row.size(), &length_squared);
    square += length_squared;
  }
  const auto numbers = static_cast<double>(rotated.size() * rotated.front().size());
  const float scale = int4_codes.ScaleFor(square / numbers) * drawn.scale_factor;
  std::vector<Quantized> quantized;
  QuantizedNorms of_block;
  for (const std::vector<float>& row : rotated) {
    quantized.push_back(QuantizeInt4(row, scale, int4_codes));
    of_block.Include(quantized.back().norms);
  }
  for (Quantized& row : quantized) {
    row.norms.length = of_block.length;
    row.norms.decoded = of_block.decoded;
  }
  return quantized;
}

template <class Quantizer>
std::vector<Quantized> QuantizeRows(const CertificateCase& drawn, const Rotation& rotation,
                                    Quantizer quantize_block) {
  std::vector<Quantized> quantized;
  const std::size_t row_count = drawn.rows->row_count();
  for (std::size_t first = 0; first < row_count; first += drawn.block_rows) {
    RotatedBlock rotated;
    for (std::size_t r = first; r < std::min(first + drawn.block_rows, row_count); ++r)
      rotated.push_back(Rotated(rotation, drawn.rows->view()[r]));
    for (Quantized& row : quantize_block(drawn, rotated)) quantized.push_back(std::move(row));
  }
  return quantized;
}

// One query against all rows.
class QueryAttack {
 public:
  QueryAttack(const CertificateCase& drawn, const Rotation& rotation,
              const std::vector<Quantized>& rows, std::size_t query)
      : drawn_(drawn), rows_(rows), bound_(drawn.dim), bias_(drawn.code_max + 1) {
    const std::vector<float> rotated = Rotated(rotation, drawn.queries->view()[query]);
    query_ = QuantizeOne(rotated, certificate::ScaleFor(FindLargest(rotated), drawn.code_max),
                         drawn.code_max);
    std::int32_t code_sum = 0;
    for (const std::int8_t code : query_.codes) code_sum += code;
    offset_ = code_sum * bias_;
    const std::size_t row_count = rows.size();
    canonical_.resize(row_count);
    certificate::SupportedCanonicalKernels().front()->score_block(
        drawn.rows->view().data(), row_count, drawn.queries->view().PaddedRow(query), 1,
        drawn.rows->view().padded_dim(), canonical_.data());
    for (const Quantized& row : rows) {
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < row.codes.size(); ++i)
        sum += query_.codes[i] * (row.codes[i] + bias_);
      sums_.push_back(sum);
      bounds_.push_back(bound_(query_.norms, row.norms));
    }
  }

  // Canonical scores lie within the bound of the cheap ones, and within their ranges.
  void CheckBounds(long double& largest_share) const {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const auto scales =
          static_cast<long double>(query_.scale) * static_cast<long double>(rows_[r].scale);
      const long double cheap = static_cast<long double>(sums_[r] - offset_) * scales;
      const long double off = std::fabs(static_cast<long double>(canonical_[r]) - cheap);
      const auto bound = static_cast<long double>(bounds_[r]);
      ASSERT_LE(off, bound) << drawn_.description << ", row " << r << ", canonical "
                            << canonical_[r];
      largest_share = std::max(largest_share, off / bound);
      const auto [lower, upper] = MakeRange(r);
      ASSERT_TRUE(lower <= canonical_[r] && canonical_[r] <= upper)
          << drawn_.description << ", row " << r << ": " << canonical_[r] << " not in " << lower
          << ", " << upper;
    }
  }

  // No threshold drops a row whose canonical score reaches it.
  void CheckDrops(float threshold) const {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      ASSERT_TRUE(canonical_[r] < threshold || Keeps(r, threshold))
          << drawn_.description << ", row " << r << ": " << canonical_[r]
          << " was dropped below the threshold " << threshold;
    }
  }

  // The k-th greatest lower bound, as a threshold, drops none of the k best.
  void CheckProvenThreshold() const {
    std::vector<float> lowers;
    std::vector<RankKey> keys;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      lowers.push_back(MakeRange(r).lower);
      keys.emplace_back(canonical_[r], static_cast<Row>(r));
    }
    const auto kth = static_cast<std::ptrdiff_t>(drawn_.k) - 1;
    std::ranges::nth_element(lowers, lowers.begin() + kth, std::greater<>());
    std::ranges::partial_sort(keys, keys.begin() + kth + 1, std::greater<>());
    const float threshold = lowers[static_cast<std::size_t>(kth)];
    for (std::size_t i = 0; i < drawn_.k; ++i) {
      ASSERT_TRUE(Keeps(keys[i].row(), threshold))
          << drawn_.description << ", row " << keys[i].row() << " of rank " << i
          << " was dropped below the threshold " << threshold;
    }
  }

  float canonical(std::size_t row) const { return canonical_[row]; }

 private:
  certificate::ScoreRange MakeRange(std::size_t row) const {
    const double scales = static_cast<double>(query_.scale) * static_cast<double>(rows_[row].scale);
    return certificate::MakeRange(static_cast<double>(sums_[row] - offset_) * scales, bounds_[row]);
  }
  bool Keeps(std::size_t row, float threshold) const {
    const double steps_per_unit =
        1.0 / static_cast<double>(query_.scale) * (1.0 / static_cast<double>(rows_[row].scale));
    return sums_[row] >=
           certificate::LeastSumToKeep(threshold, bounds_[row], steps_per_unit, offset_);
  }

  const CertificateCase& drawn_;
  const std::vector<Quantized>& rows_;
  const ScoreBound bound_;
  const std::int32_t bias_;
  Quantized query_;
  std::int32_t offset_ = 0;
  std::vector<float> canonical_;
  std::vector<std::int32_t> sums_;  // of query code times row byte
  std::vector<double> bounds_;
};

void AttackRows(const CertificateCase& drawn, const Rotation& rotation,
                const std::vector<Quantized>& rows, std::uint64_t seed,
                long double& largest_share) {
  SeededRandom random(seed + 17);
  for (std::size_t query = 0; query < drawn.queries->row_count(); ++query) {
    const QueryAttack attack(drawn, rotation, rows, query);
    attack.CheckBounds(largest_share);
    attack.CheckProvenThreshold();
    // A row's own score, the floats next to it, and a random part of it.
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (int i = 0; i < 2; ++i) {
      const float score = attack.canonical(random.Below(rows.size()));
      attack.CheckDrops(score);
      attack.CheckDrops(std::nextafter(score, kInfinity));
      attack.CheckDrops(std::nextafter(score, -kInfinity));
      attack.CheckDrops(score * random.Signed());
    }
    attack.CheckDrops(0);
    attack.CheckDrops(-kInfinity);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void CheckCase(std::uint64_t seed, long double& largest_share) {
  const CertificateCase drawn = MakeCertificateCase(seed);
  const Rotation rotation(drawn.dim);
  AttackRows(drawn, rotation, QuantizeRows(drawn, rotation, QuantizeBlock), seed, largest_share);
  if (::testing::Test::HasFatalFailure()) return;
  AttackRows(drawn, rotation, QuantizeRows(drawn, rotation, QuantizeInt4Block), seed,
             largest_share);
}

class CertificateTest : public ::testing::TestWithParam<Family> {};

TEST_P(CertificateTest, HoldsUnderAttack) {
  long double largest_share = 0;
  if (const char* text = std::getenv("SIMILE_CERTIFICATE_SEED")) {
    const std::uint64_t seed = std::strtoull(text, nullptr, 10);
    if (ToFamily(seed) != GetParam()) GTEST_SKIP() << "the seed is of another family";
    CheckCase(seed, largest_share);
    return;
  }
  const std::uint64_t first_seed = FindFirstSeed(GetParam());
  for (std::uint64_t i = 0; i < kCasesPerFamily; ++i) {
    CheckCase(first_seed + i, largest_share);
    if (HasFatalFailure()) {
      std::printf("replay with SIMILE_CERTIFICATE_SEED=%" PRIu64 "\n", first_seed + i);
      return;
    }
  }
  std::printf("%" PRIu64 " cases from seed %" PRIu64 ": errors up to %.3Lf of the bound\n",
              kCasesPerFamily, first_seed, largest_share);
  // An attack that stays far from the bound would prove nothing.
  const bool aligned = GetParam() == Family::kAlignedRows || GetParam() == Family::kAlignedBoth;
  EXPECT_GT(largest_share, aligned ? 0.9L : 0.1L);
}

std::vector<Family> AllFamilies() {
  std::vector<Family> families;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Family::kCount); ++i) {
    families.push_back(static_cast<Family>(i));
  }
  return families;
}

INSTANTIATE_TEST_SUITE_P(Families, CertificateTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

}  // namespace
}  // namespace simile::tests

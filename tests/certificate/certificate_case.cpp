#include "certificate/certificate_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <sstream>
#include <vector>

#include "certificate/exact_rotation.h"
#include "certificate/quantizer.h"
#include "certificate/seeded_random.h"

namespace simile::tests {
namespace {

// The most numbers of a case; its row count is limited by it.
constexpr std::size_t kNumbersMax = 60'000;
// Aligned vectors are rotated back exactly, at a cost of the dimension squared.
constexpr std::size_t kAlignedDimMax = 192;

bool IsAligned(Family family) {
  return family == Family::kAlignedRows || family == Family::kAlignedBoth;
}

std::size_t DrawDim(Family family, SeededRandom& random) {
  if (IsAligned(family)) return certificate::kCodeStep * random.Between(1, kAlignedDimMax / 64);
  switch (random.Below(20)) {
    case 0:
      return random.Between(1, 4096);
    case 1:
      return 4096;
    case 2:
    case 3:
      return 64 * random.Between(1, 12) + random.Between(0, 2) - 1;
    case 4:
    case 5:
    case 6:
      return random.Between(1, 768);
    default:
      return random.Between(1, 130);
  }
}

std::size_t DrawRowCount(Family family, std::size_t dim, SeededRandom& random) {
  const std::size_t affordable = std::clamp<std::size_t>(kNumbersMax / dim, 1, 4'000);
  if (family == Family::kNearTies) return affordable;
  return random.Between(1, random.OneIn(4) ? affordable : std::min<std::size_t>(affordable, 60));
}

void ScaleTo(std::span<float> vector, double length) {
  double norm = static_cast<double>(ExactLength(vector));
  if (norm == 0) {
    vector[0] = 1;
    norm = 1;
  }
  for (float& value : vector)
    value = static_cast<float>(static_cast<double>(value) * (length / norm));
}

double WildLength(SeededRandom& random) {
  return std::ldexp(1.0, static_cast<int>(random.Below(119)) - 59);
}

void FillRow(Family family, std::span<float> row, SeededRandom& random) {
  for (float& value : row) value = random.Signed();
  switch (family) {
    case Family::kOneHot:
      std::ranges::fill(row, 0.0F);
      row[random.Below(row.size())] = random.OneIn(2) ? 1.0F : -1.0F;
      return;
    case Family::kSubnormalElements:
      for (float& value : row) value = random.OneIn(8) ? random.Signed() : 0.0F;
      ScaleTo(row, random.OneIn(2) ? 1 : 0x1p-59);
      for (float& value : row) {
        if (value == 0) value = random.Subnormal();
      }
      return;
    case Family::kWildNorms:
      ScaleTo(row, WildLength(random));
      return;
    case Family::kWildElements:
      for (float& value : row) value = random.Wild(-120, 0);
      break;
    case Family::kOneSign:
      for (float& value : row) value = 1 + value * 0x1p-10F;
      break;
    default:
      break;
  }
  ScaleTo(row, 1);
}

void FillRows(CertificateCase& drawn, SeededRandom& random) {
  PaddedRows& rows = *drawn.rows;
  std::vector<float> direction(drawn.dim);
  FillRow(Family::kUniform, direction, random);
  const std::size_t distinct = drawn.family == Family::kAllEqual ? 1 : 5;
  for (std::size_t r = 0; r < rows.row_count(); ++r) {
    if (drawn.family == Family::kNearTies) {
      for (std::size_t i = 0; i < drawn.dim; ++i)
        rows[r][i] = direction[i] * (1 + random.Signed() * 0x1p-21F);
    } else if ((drawn.family == Family::kAllEqual || drawn.family == Family::kDuplicates) &&
               r >= distinct) {
      std::ranges::copy(rows.view()[random.Below(distinct)], rows[r].begin());
    } else {
      FillRow(drawn.family, rows[r], random);
    }
  }
}

void FillQueries(CertificateCase& drawn, SeededRandom& random) {
  for (std::size_t q = 0; q < drawn.queries->row_count(); ++q) {
    const std::span<float> query = (*drawn.queries)[q];
    if (random.OneIn(3)) {  // a query that is a row, as for "more like this"
      const std::size_t row = random.Below(drawn.rows->row_count());
      std::ranges::copy(drawn.rows->view()[row], query.begin());
    } else {
      FillRow(drawn.family == Family::kOneHot && random.OneIn(2) ? Family::kUniform : drawn.family,
              query, random);
    }
  }
}

// Rotated numbers of `code` steps and a fraction each, with these signs, so that their residual is
// parallel to the signs. One number of code_max steps fixes the scale.
std::vector<long double> Stepped(std::span<const int> signs, long double step, int code,
                                 long double fraction, std::int32_t code_max) {
  std::vector<long double> rotated(signs.size());
  for (std::size_t i = 0; i < signs.size(); ++i) rotated[i] = signs[i] * step * (code + fraction);
  rotated[0] = signs[0] * step * code_max;
  return rotated;
}

void StoreUnrotated(const ExactRotation& rotation, std::span<const long double> rotated,
                    std::span<float> out) {
  const std::vector<long double> vector = rotation.ApplyInverse(rotated);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(vector[i]);
}

// The worst case of Cauchy-Schwarz: residuals parallel to the vectors that they are multiplied
// with. The query's rotated numbers all have one magnitude, and the rows' residuals have its signs
// or the opposite ones. In kAlignedBoth the query has such a residual too, along rows of one
// magnitude.
void FillAligned(CertificateCase& drawn, SeededRandom& random) {
  const ExactRotation rotation{certificate::Rotation(drawn.dim)};
  const bool both = drawn.family == Family::kAlignedBoth;
  std::vector<int> signs(drawn.dim);
  for (int& sign : signs) sign = random.OneIn(2) ? 1 : -1;
  const auto code_max = static_cast<std::size_t>(drawn.code_max);
  constexpr long double kFraction = 0.4995L;
  for (std::size_t q = 0; q < drawn.queries->row_count(); ++q) {
    const int code = static_cast<int>(both ? random.Between(code_max / 2, code_max - 1) : code_max);
    StoreUnrotated(rotation,
                   Stepped(signs, 0.01L, code, both ? (q % 2 == 0 ? kFraction : -kFraction) : 0.0L,
                           drawn.code_max),
                   (*drawn.queries)[q]);
  }
  for (std::size_t r = 0; r < drawn.rows->row_count(); ++r) {
    const int code = static_cast<int>(random.Between(0, code_max - 1));
    std::vector<int> row_signs = signs;
    if (r % 3 == 0) {
      for (int& sign : row_signs) sign = -sign;
    }
    StoreUnrotated(
        rotation,
        Stepped(row_signs, 0.01L, code, r % 2 == 0 ? kFraction : -kFraction, drawn.code_max),
        (*drawn.rows)[r]);
  }
}

}  // namespace

const char* NameOf(Family family) {
  constexpr std::array<const char*, static_cast<std::size_t>(Family::kCount)> kNames{
      "Uniform",   "NearTies",     "Duplicates", "AllEqual",    "OneHot",     "SubnormalElements",
      "WildNorms", "WildElements", "OneSign",    "AlignedRows", "AlignedBoth"};
  return kNames[static_cast<std::size_t>(family)];
}

CertificateCase MakeCertificateCase(std::uint64_t seed) {
  SeededRandom random(seed);
  CertificateCase drawn;
  drawn.seed = seed;
  drawn.family = ToFamily(seed);
  drawn.dim = DrawDim(drawn.family, random);
  const std::size_t row_count = DrawRowCount(drawn.family, drawn.dim, random);
  drawn.code_max = random.OneIn(3) ? 63 : certificate::kByteCodeMax;
  drawn.block_rows = std::array<std::size_t, 4>{1, 3, 16, row_count}[random.Below(4)];
  if (random.OneIn(6)) drawn.scale_factor = std::fabs(random.Wild(-4, 3));
  drawn.k = random.OneIn(4) ? row_count : random.Between(1, row_count);
  drawn.rows = std::make_unique<PaddedRows>(row_count, drawn.dim);
  drawn.queries = std::make_unique<PaddedRows>(random.Between(1, 3), drawn.dim);
  if (IsAligned(drawn.family)) {
    FillAligned(drawn, random);
  } else {
    FillRows(drawn, random);
    FillQueries(drawn, random);
  }
  std::ostringstream description;
  description << "seed " << seed << ": " << NameOf(drawn.family) << ", " << row_count
              << " rows of dim " << drawn.dim << " in blocks of " << drawn.block_rows
              << ", codes to " << drawn.code_max << ", scale times " << drawn.scale_factor << ", k "
              << drawn.k;
  drawn.description = description.str();
  return drawn;
}

}  // namespace simile::tests

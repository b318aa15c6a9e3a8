#include "conformance/conformance_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "certificate/canonical_score.h"
#include "certificate/seeded_random.h"

namespace simile::conformance {
namespace {

using tests::PaddedRows;
using tests::SeededRandom;

// The most multiply-adds of a case; its row count is limited by it.
constexpr std::size_t kWorkMax = 600'000;

enum class Rows : std::size_t {
  kUniform,
  kFewDistinct,  // every row a copy of one of a handful: ties everywhere
  kAllEqual,
  kOneHot,
  kNearTies,  // one direction, differences in the last bits
  kSubnormalElements,
  kWildNorms,  // 2^-60 to 2^60, for dot products
  kCount
};

std::size_t DrawDim(SeededRandom& random) {
  switch (random.Below(40)) {
    case 0:
      return random.Between(1, 4096);
    case 1:
    case 2:
    case 3:
      return random.Between(1, 768);
    case 4:
    case 5:
    case 6:
      return kLaneCount * random.Between(1, 12) + random.Between(0, 2) - 1;
    default:
      return random.Between(1, 70);
  }
}

std::size_t DrawBatch(SeededRandom& random) {
  constexpr std::array<std::size_t, 12> kBatches{1, 1, 1, 2, 3, 4, 15, 16, 17, 31, 33, 100};
  return kBatches[random.Below(kBatches.size())];
}

std::size_t DrawRowCount(std::size_t dim, std::size_t batch, SeededRandom& random) {
  const std::size_t affordable = std::clamp<std::size_t>(kWorkMax / (dim * batch), 1, 3'000);
  switch (random.Below(4)) {
    case 0:
      return random.Between(1, std::min<std::size_t>(affordable, 20));
    case 1:
      return random.Between(1, std::min<std::size_t>(affordable, 300));
    default:
      return random.Between(1, affordable);
  }
}

std::uint32_t DrawK(std::size_t row_count, SeededRandom& random) {
  switch (random.Below(8)) {
    case 0:
      return 1;
    case 1:
      return static_cast<std::uint32_t>(row_count);
    case 2:  // more than there are
      return static_cast<std::uint32_t>(row_count + random.Between(1, 100));
    case 3:
      return static_cast<std::uint32_t>(random.Between(1, row_count));
    default:
      return static_cast<std::uint32_t>(random.Between(1, std::min<std::size_t>(row_count, 20)));
  }
}

double Norm(std::span<const float> vector) {
  double squares = 0;
  for (const float value : vector)
    squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

// Scales the vector to this length, as closely as fp32 allows; a zero vector becomes one-hot first.
void Scale(std::span<float> vector, double length) {
  double norm = Norm(vector);
  if (norm == 0) {
    vector[0] = 1;
    norm = 1;
  }
  for (float& value : vector) {
    value = static_cast<float>(static_cast<double>(value) * (length / norm));
  }
}

void FillUniform(std::span<float> vector, SeededRandom& random) {
  for (float& value : vector) value = random.Signed();
}

void FillRows(Rows kind, PaddedRows& rows, SeededRandom& random) {
  const std::size_t distinct = kind == Rows::kAllEqual ? 1 : 5;
  std::vector<float> direction(rows.dim());
  FillUniform(direction, random);
  for (std::size_t r = 0; r < rows.row_count(); ++r) {
    const std::span<float> row = rows[r];
    double length = 1;
    switch (kind) {
      case Rows::kAllEqual:
      case Rows::kFewDistinct:
        if (r >= distinct) {
          std::ranges::copy(rows.view()[random.Below(distinct)], row.begin());
          continue;
        }
        FillUniform(row, random);
        break;
      case Rows::kOneHot:
        row[random.Below(row.size())] = random.OneIn(2) ? 1.0F : -1.0F;
        break;
      case Rows::kNearTies:
        for (std::size_t i = 0; i < row.size(); ++i) {
          row[i] = direction[i] * (1.0F + random.Signed() * 0x1p-20F);
        }
        break;
      case Rows::kSubnormalElements:
        for (float& value : row) value = random.OneIn(8) ? random.Signed() : 0.0F;
        Scale(row, 1);
        for (float& value : row) {
          if (value == 0) value = random.Subnormal();
        }
        continue;
      case Rows::kWildNorms:
        FillUniform(row, random);
        length = std::ldexp(1.0, static_cast<int>(random.Below(119)) - 59);
        break;
      default:
        FillUniform(row, random);
    }
    Scale(row, length);
  }
}

// Which rows of a case are all zeros, and whether they are skipped.
struct ZeroRows {
  std::size_t one_in = 0;  // 0: none; 1: every row
  bool skipped = false;
};

// By a generator of its own, so that the rest of the case does not depend on it.
ZeroRows DrawZeroRows(SeededRandom& random) {
  if (!random.OneIn(4)) return {};
  return {std::array<std::size_t, 5>{1, 2, 3, 10, 100}[random.Below(5)], random.OneIn(2)};
}

std::string TextOf(const ZeroRows& zero) {
  if (zero.one_in == 0) return "";
  return fmt::format(", one row in {} of zeros{}", zero.one_in, zero.skipped ? ", skipped" : "");
}

// Zeros of both signs. Returns which rows are left as they were.
RowMask ZeroSome(const ZeroRows& zero, Row first_row, PaddedRows& rows, SeededRandom& random) {
  RowMask left(first_row + rows.row_count());
  for (std::size_t r = 0; r < rows.row_count(); ++r) {
    if (zero.one_in == 0 || !random.OneIn(zero.one_in)) {
      left.Allow(first_row + static_cast<Row>(r));
      continue;
    }
    for (float& value : rows[r]) value = random.OneIn(2) ? 0.0F : -0.0F;
  }
  return left;
}

// Restricts the masks of all queries; those without one share `rows`.
void RestrictTo(const RowMask& rows, std::vector<std::shared_ptr<RowMask>>& masks) {
  const auto shared = std::make_shared<RowMask>(rows);
  for (std::shared_ptr<RowMask>& mask : masks) {
    if (mask == nullptr) {
      mask = shared;
    } else {
      mask->IntersectWith(rows);
    }
  }
}

void FillQueries(Rows kind, const PaddedRows& rows, PaddedRows& queries, SeededRandom& random) {
  for (std::size_t q = 0; q < queries.row_count(); ++q) {
    const std::span<float> query = queries[q];
    if (random.OneIn(4)) {  // a query that is a row, as for "more like this"
      std::ranges::copy(rows[random.Below(rows.row_count())], query.begin());
      continue;
    }
    FillUniform(query, random);
    Scale(query, kind == Rows::kWildNorms
                     ? std::ldexp(1.0, static_cast<int>(random.Below(119)) - 59)
                     : 1.0);
  }
}

std::shared_ptr<RowMask> DrawMask(Row first_row, std::size_t row_count, SeededRandom& random) {
  if (random.OneIn(2)) return nullptr;
  auto mask = std::make_shared<RowMask>(first_row + row_count);
  // From no row to all rows; sometimes only the rows from some row on, as of a sorted field.
  const std::size_t one_in = std::array<std::size_t, 5>{1, 2, 10, 300, 0}[random.Below(5)];
  const std::size_t begin = random.OneIn(3) ? random.Below(row_count) : 0;
  for (std::size_t i = begin; i < row_count; ++i) {
    if (one_in != 0 && random.OneIn(one_in)) mask->Allow(first_row + static_cast<Row>(i));
  }
  return mask;
}

std::vector<Row> DrawExcluded(Row first_row, std::size_t row_count, SeededRandom& random) {
  std::vector<Row> excluded;
  if (!random.OneIn(3)) return excluded;
  const std::size_t one_in = std::array<std::size_t, 3>{2, 20, 200}[random.Below(3)];
  for (std::size_t i = 0; i < row_count; ++i) {
    if (random.OneIn(one_in)) excluded.push_back(first_row + static_cast<Row>(i));
  }
  // Rows of other segments may be named too.
  if (first_row > 0) excluded.insert(excluded.begin(), first_row - 1);
  excluded.push_back(first_row + static_cast<Row>(row_count));
  return excluded;
}

// A threshold that is exactly some row's score, or none.
float DrawThreshold(const ConformanceCase& drawn, std::size_t query, SeededRandom& random) {
  if (!random.OneIn(4)) return -std::numeric_limits<float>::infinity();
  return certificate::CanonicalScoreReference(
      drawn.rows->view()[random.Below(drawn.rows->row_count())], drawn.queries->view()[query]);
}

}  // namespace

bool ConformanceCase::Passes(std::size_t query, Row row, float score) const {
  const QuerySpec& spec = specs[query];
  if (spec.mask != nullptr && !spec.mask->Allows(row)) return false;
  if (std::ranges::find(spec.excluded_rows, row) != spec.excluded_rows.end()) return false;
  return score >= spec.score_threshold;
}

ConformanceCase MakeCase(std::uint64_t seed) {
  SeededRandom random(seed);
  ConformanceCase drawn;
  drawn.seed = seed;
  const std::size_t dim = DrawDim(random);
  const std::size_t batch = DrawBatch(random);
  const std::size_t row_count = DrawRowCount(dim, batch, random);
  const auto kind = static_cast<Rows>(random.Below(static_cast<std::size_t>(Rows::kCount)));
  drawn.metric = kind == Rows::kWildNorms ? Metric::kDot : Metric::kCosine;
  drawn.first_row = random.OneIn(3) ? static_cast<Row>(random.Below(1'000)) : 0;
  drawn.rows = std::make_shared<PaddedRows>(row_count, dim, random.Below(4));
  drawn.queries = std::make_shared<PaddedRows>(batch, dim, random.Below(4));
  FillRows(kind, *drawn.rows, random);
  SeededRandom zero_random(~seed);
  const ZeroRows zero = DrawZeroRows(zero_random);
  if (zero.one_in != 0 && !zero.skipped) drawn.metric = Metric::kDot;
  const RowMask others = ZeroSome(zero, drawn.first_row, *drawn.rows, zero_random);
  FillQueries(kind, *drawn.rows, *drawn.queries, random);
  drawn.specs.resize(batch);
  drawn.excluded_rows.resize(batch);
  for (std::size_t query = 0; query < batch; ++query) {
    drawn.masks.push_back(DrawMask(drawn.first_row, row_count, random));
    drawn.excluded_rows[query] = DrawExcluded(drawn.first_row, row_count, random);
    QuerySpec& spec = drawn.specs[query];
    spec.k = DrawK(row_count, random);
    spec.excluded_rows = drawn.excluded_rows[query];
    spec.score_threshold = DrawThreshold(drawn, query, random);
  }
  if (zero.skipped) RestrictTo(others, drawn.masks);
  for (std::size_t query = 0; query < batch; ++query) {
    drawn.specs[query].mask = drawn.masks[query].get();
  }
  drawn.description =
      fmt::format("seed {}: {} rows from row {}, dim {}, batch {}, kind {}{}", seed, row_count,
                  drawn.first_row, dim, batch, static_cast<std::size_t>(kind), TextOf(zero));
  return drawn;
}

}  // namespace simile::conformance

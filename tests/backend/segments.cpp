#include "backend/segments.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace simile::tests {

void ScaleTo(std::span<float> vector, double length) {
  double squares = 0;
  for (const float value : vector)
    squares += static_cast<double>(value) * static_cast<double>(value);
  const double factor = length / std::sqrt(squares);
  for (float& value : vector) value = static_cast<float>(static_cast<double>(value) * factor);
}

std::shared_ptr<PaddedRows> UnitRows(std::size_t row_count, std::size_t dim, SeededRandom& random) {
  auto rows = std::make_shared<PaddedRows>(row_count, dim);
  for (std::size_t r = 0; r < row_count; ++r) {
    for (float& value : (*rows)[r]) value = random.Signed();
    ScaleTo((*rows)[r], 1);
  }
  return rows;
}

std::shared_ptr<PaddedRows> NearlyEqualRows(std::size_t row_count, std::size_t dim,
                                            SeededRandom& random) {
  auto rows = UnitRows(row_count, dim, random);
  for (std::size_t row = 1; row < row_count; row += 2) {
    for (std::size_t i = 0; i < dim; ++i) {
      (*rows)[row][i] = (*rows)[0][i] * (1 + random.Signed() * 0x1p-12F);
    }
    ScaleTo((*rows)[row], 1);
  }
  return rows;
}

SegmentRows MakeSegment(const std::shared_ptr<PaddedRows>& rows, Row first_row) {
  return {rows->view(), rows, Metric::kDot, first_row};
}

std::vector<QuerySpec> Specs(std::size_t count, std::uint32_t k) {
  QuerySpec spec;
  spec.k = k;
  return std::vector<QuerySpec>(count, spec);
}

RowMask DrawRowMask(Row end, std::size_t one_in, SeededRandom& random) {
  RowMask mask(end);
  for (Row row = 0; one_in != 0 && row < end; ++row) {
    if (random.OneIn(one_in)) mask.Allow(row);
  }
  return mask;
}

void ExpectSameAnswers(const SearchResult& actual, const SearchResult& expected,
                       const std::string& what) {
  ASSERT_EQ(actual.batch(), expected.batch()) << what;
  for (std::size_t query = 0; query < expected.batch(); ++query) {
    const std::span<const Hit> hits = actual.Hits(query);
    const std::span<const Hit> wanted = expected.Hits(query);
    ASSERT_EQ(hits.size(), wanted.size()) << what << ", query " << query;
    for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
      ASSERT_TRUE(hits[rank].row == wanted[rank].row &&
                  std::bit_cast<std::uint32_t>(hits[rank].score) ==
                      std::bit_cast<std::uint32_t>(wanted[rank].score))
          << what << ", query " << query << ", rank " << rank << ": row " << hits[rank].row
          << " with " << hits[rank].score << " instead of row " << wanted[rank].row << " with "
          << wanted[rank].score;
    }
  }
}

}  // namespace simile::tests

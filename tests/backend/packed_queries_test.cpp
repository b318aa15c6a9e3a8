#include "backend/cpu/packed_queries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "backend/segments.h"

namespace simile::backend::cpu {
namespace {

using tests::PaddedRows;
using tests::ScaleTo;
using tests::SeededRandom;
using tests::UnitRows;

constexpr std::uint64_t kSeed = 71;

// Of Int8Kernel::four_columns_max: the AVX2 kernel's, a smaller one, and none.
constexpr std::int32_t kLimits[] = {128, 40, 0};

// Random vectors, and rotated one-hot ones, whose second rotation is less even than usual.
void DrawQuery(std::span<float> query, const certificate::Rotation& rotation,
               SeededRandom& random) {
  for (float& value : query) value = random.Signed();
  if (random.OneIn(2)) {
    std::vector<float> one_hot(rotation.rotated_dim());
    std::vector<float> spare(rotation.rotated_dim());
    one_hot[random.Below(one_hot.size())] = 1;
    rotation.Rotate<1>(one_hot.data(), spare.data());
    std::copy_n(one_hot.begin(), query.size(), query.begin());
  }
  ScaleTo(query, std::ldexp(1.0, static_cast<int>(random.Below(100)) - 50));
}

// The greatest sum that a kernel's limit is about.
//   codes  as PackedQueries packs those of the first query
std::int32_t GreatestOfFourColumns(const std::int8_t* codes, std::size_t rotated_dim) {
  std::int32_t greatest = 0;
  for (std::size_t first = 0; first < rotated_dim; first += 8) {
    const std::int8_t* eight = codes + first / 64 * kTileQueries * 64 + first % 64;
    std::int32_t positive[2] = {};
    std::int32_t negative[2] = {};
    for (std::size_t i = 0; i < 8; ++i)
      (eight[i] > 0 ? positive : negative)[FourOf(i)] += std::abs(eight[i]);
    greatest = std::max({greatest, positive[0], positive[1], negative[0], negative[1]});
  }
  return greatest;
}

TEST(PackedQueriesTest, KeepsFourColumnsWithinTheLimitOfTheKernel) {
  SeededRandom random(kSeed);
  for (const std::size_t dim : {3U, 64U, 100U, 384U}) {
    const auto rows = UnitRows(64, dim, random);
    PackedRows::Progress progress;
    const auto packed = PackedRows::Build(rows->view(), ShapeOf(64, dim, 1), 1, progress);
    for (const std::int32_t limit : kLimits) {
      PackedQueries queries;
      queries.Reset(*packed, limit, 1);
      PackedQueries::Scratch scratch;
      PackedQueries::Reserve(*packed, scratch);
      std::int32_t greatest = 0;
      for (int round = 0; round < 500; ++round) {
        PaddedRows query(1, dim);
        DrawQuery(query[0], packed->rotation(), random);
        queries.Pack(*packed, 0, query.view().data(), query.view().padded_dim(), scratch);
        greatest = std::max(greatest,
                            GreatestOfFourColumns(queries.codes(0), packed->shape().rotated_dim));
      }
      const std::string what = "dim " + std::to_string(dim) + ", seed " + std::to_string(kSeed);
      if (limit == 0) {
        EXPECT_GT(greatest, 128) << what;
      } else {
        EXPECT_LE(greatest, limit) << what;
        EXPECT_GE(greatest, limit * 9 / 10) << what << ": more is lost than needed";
      }
    }
  }
}

}  // namespace
}  // namespace simile::backend::cpu

#include "backend/cpu/packed_queries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "backend/segments.h"

namespace simile::backend::cpu {
namespace {

using tests::PaddedRows;
using tests::ScaleTo;
using tests::SeededRandom;
using tests::UnitRows;

constexpr std::uint64_t kSeed = 71;

// A limit as of Int8Kernel::four_codes_max, and none.
constexpr std::int32_t kLimits[] = {128, 0};

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

TEST(PackedQueriesTest, KeepsFourCodesWithinTheLimitOfTheKernel) {
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
        for (std::size_t first = 0; first < packed->shape().rotated_dim; first += 8) {
          const std::int8_t* eight = queries.codes(0) + first / 64 * kTileQueries * 64 + first % 64;
          for (std::size_t four = 0; four < 4; four += 2) {
            std::int32_t positive = 0;
            std::int32_t negative = 0;
            for (const std::size_t i : {0U, 1U, 4U, 5U}) {
              const std::int32_t code = eight[four + i];
              (code > 0 ? positive : negative) += std::abs(code);
            }
            greatest = std::max({greatest, positive, negative});
          }
        }
      }
      if (limit > 0) {
        EXPECT_LE(greatest, limit) << "dim " << dim << ", seed " << kSeed;
        EXPECT_GE(greatest, limit * 9 / 10) << "and uses it";
      } else {
        EXPECT_GT(greatest, 128);
      }
    }
  }
}

}  // namespace
}  // namespace simile::backend::cpu

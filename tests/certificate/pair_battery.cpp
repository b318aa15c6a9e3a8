#include "certificate/pair_battery.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <vector>

#include "certificate/padded_rows.h"
#include "certificate/seeded_random.h"

namespace simile::tests {
namespace {

enum class Kind : std::size_t {
  kUniform,
  kWild,
  kSubnormal,
  kUnderflowing,
  kCancelling,
  kOneHot,
  kMixed,
  kCount
};

float Element(Kind kind, std::size_t i, std::size_t hot, SeededRandom& random) {
  switch (kind) {
    case Kind::kUniform:
      return random.Signed();
    case Kind::kWild:
      return random.Wild(-70, 50);
    case Kind::kSubnormal:
      return random.Subnormal();
    case Kind::kUnderflowing:  // products around the smallest subnormal
      return random.Wild(-80, -70);
    case Kind::kCancelling:  // neighbours of a lane nearly cancel each other
      return ((i / kLaneCount) % 2 == 0 ? 1.0F : -1.0F) * (1.0F + random.Signed() * 0x1p-18F);
    case Kind::kOneHot:
      return i == hot ? 1.0F : (random.OneIn(2) ? 0.0F : -0.0F);
    default:
      return Element(static_cast<Kind>(random.Below(static_cast<std::size_t>(Kind::kMixed))), i,
                     hot, random);
  }
}

// Mostly short, so that a million pairs take a second; every length is possible.
std::size_t RandomDim(SeededRandom& random) {
  switch (random.Below(200)) {
    case 0:
      return random.Between(1, 4096);
    case 1:
      return kLaneCount * random.Between(1, 128) + random.Between(0, 2) - 1;
    default:
      return random.OneIn(8) ? random.Between(1, 400) : random.Between(1, 100);
  }
}

void FillRows(PaddedRows& rows, SeededRandom& random) {
  for (std::size_t r = 0; r < rows.row_count(); ++r) {
    const auto kind = static_cast<Kind>(random.Below(static_cast<std::size_t>(Kind::kCount)));
    const std::size_t hot = random.Below(rows.dim());
    for (std::size_t i = 0; i < rows.dim(); ++i) rows[r][i] = Element(kind, i, hot, random);
  }
}

// Expects score_scattered to give the scores that score_block gave for the first query, the rows in
// another order.
void ExpectSameScattered(const certificate::CanonicalKernel& kernel, const PaddedRows& rows,
                         const PaddedRows& queries, const std::vector<float>& scores) {
  const std::size_t count = rows.row_count();
  std::vector<const float*> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = rows.view().PaddedRow(count - 1 - i);
  std::vector<float> scattered(count);
  kernel.score_scattered(places.data(), count, queries.view().data(), rows.view().padded_dim(),
                         scattered.data());
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(scattered[i]),
              std::bit_cast<std::uint32_t>(scores[count - 1 - i]))
        << "row " << i << " of " << count;
  }
}

}  // namespace

void ExpectReferenceBits(const certificate::CanonicalKernel& kernel, std::uint64_t seed,
                         std::size_t pair_count) {
  SeededRandom random(seed);
  std::size_t pairs = 0;
  std::size_t blocks = 0;
  for (; pairs < pair_count; ++blocks) {
    const std::size_t dim = RandomDim(random);
    PaddedRows rows(random.Between(1, 9), dim, random.Below(4));
    PaddedRows queries(random.Between(1, 8), dim, random.Below(4));
    FillRows(rows, random);
    FillRows(queries, random);
    std::vector<float> scores(rows.row_count() * queries.row_count());
    kernel.score_block(rows.view().data(), rows.row_count(), queries.view().data(),
                       queries.row_count(), rows.view().padded_dim(), scores.data());
    ASSERT_NO_FATAL_FAILURE(ExpectSameScattered(kernel, rows, queries, scores)) << "seed " << seed;
    for (std::size_t q = 0; q < queries.row_count(); ++q) {
      for (std::size_t r = 0; r < rows.row_count(); ++r) {
        const float expected =
            certificate::CanonicalScoreReference(rows.view()[r], queries.view()[q]);
        const float actual = scores[q * rows.row_count() + r];
        ASSERT_EQ(std::bit_cast<std::uint32_t>(actual), std::bit_cast<std::uint32_t>(expected))
            << "seed " << seed << ", block " << blocks << ", row " << r << " of "
            << rows.row_count() << ", query " << q << " of " << queries.row_count() << ", dim "
            << dim << ": " << actual << " instead of " << expected;
      }
    }
    pairs += scores.size();
  }
  std::printf("%zu pairs in %zu blocks have the reference's bits, seed %llu\n", pairs, blocks,
              static_cast<unsigned long long>(seed));
}

}  // namespace simile::tests

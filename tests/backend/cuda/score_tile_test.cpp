// The kernels that read a tile of fp16 scores, with arrays that end where the tile, its masks and
// its queries do.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/emulated_gpu.h"
#include "backend/segments.h"
#include "emulated_cuda/device_array.h"
#include "kernels/score_tile.h"

namespace simile::kernels {
namespace {

using emulated_cuda::DeviceArray;
using tests::SeededRandom;

constexpr unsigned kScoresOfLoad = 8;

// Random scores of a few queries, every second of which has a mask. The scores between the last
// column and the pitch are higher than all others.
class TileCase {
 public:
  TileCase(unsigned columns, unsigned first, std::uint64_t seed)
      : first_(first),
        columns_(columns),
        pitch_((columns + kScoresOfLoad - 1) / kScoresOfLoad * kScoresOfLoad),
        mask_((first + pitch_ + 31) / 32, 0) {
    tests::ResetEmulatedGpu(tests::CardOf(0), seed);
    SeededRandom random(seed);
    for (unsigned i = 0; i < kQueries * pitch_; ++i) {
      scores_.push_back(__float2half_rn(i % pitch_ < columns ? random.Signed() : 1.0F));
    }
    for (unsigned& word : mask_) word = static_cast<unsigned>(random.Below(std::size_t{1} << 32));
  }

  // The gate of a sample with a margin of 0: the rank-th best single score, or maximum of a load.
  float ExpectedGate(unsigned query, unsigned group, unsigned rank) const {
    std::vector<float> best;
    for (unsigned column = 0; column < columns_; ++column) {
      if (column % group == 0) best.push_back(kLowestScore);
      if (Passes(query, column)) best.back() = std::max(best.back(), Score(query, column));
    }
    if (rank > best.size()) return kLowestScore;
    std::ranges::sort(best, std::greater<>());
    return best[rank - 1];
  }
  void ExpectGate(unsigned group, unsigned rank, const std::string& what) const {
    const Buffers on_device(*this, rank, std::vector<float>(kQueries, 0), 1);
    const ScoreTile tile{on_device.scores.data(), pitch_, columns_, first_};
    ASSERT_EQ(LaunchSampleGate(on_device.pass, tile, {columns_, group, 0}, nullptr), cudaSuccess);
    const std::vector<float> gates = on_device.gates.Read();
    for (unsigned query = 0; query < kQueries; ++query) {
      EXPECT_EQ(gates[query], ExpectedGate(query, group, rank)) << what << ", query " << query;
    }
    EXPECT_EQ(emulated_cuda::TakeReport(), "") << what;
  }

  // Hits at or above a gate that about one score in four reaches.
  //   capacity  of each query
  void ExpectHits(unsigned capacity, const std::string& what) const {
    constexpr float kGate = 0.5F;
    const Buffers on_device(*this, 1, std::vector<float>(kQueries, kGate), capacity);
    const ScoreTile tile{on_device.scores.data(), pitch_, columns_, first_};
    ASSERT_EQ(LaunchTopkFp16(on_device.pass, tile, nullptr), cudaSuccess);
    const std::vector<unsigned> counts = on_device.hit_counts.Read();
    const std::vector<Hit> hits = on_device.hits.Read();
    for (unsigned query = 0; query < kQueries; ++query) {
      std::vector<std::pair<unsigned, float>> expected, found;
      for (unsigned column = 0; column < columns_; ++column) {
        if (Score(query, column) < kGate || !Passes(query, column)) continue;
        expected.emplace_back(first_ + column, Score(query, column));
      }
      EXPECT_EQ(counts[query], expected.size()) << what << ", query " << query;
      for (unsigned i = 0; i < std::min(counts[query], capacity); ++i) {
        const Hit& hit = hits[query * capacity + i];
        found.emplace_back(hit.position, hit.score);
      }
      std::ranges::sort(found);
      EXPECT_TRUE(std::ranges::includes(expected, found)) << what << ", query " << query;
      EXPECT_EQ(std::ranges::adjacent_find(found), found.end()) << what << ", query " << query;
    }
    EXPECT_EQ(emulated_cuda::TakeReport(), "") << what;
  }

 private:
  static constexpr unsigned kQueries = 3;

  struct Buffers {
    Buffers(const TileCase& one, unsigned rank, const std::vector<float>& first_gates,
            unsigned capacity)
        : scores(one.scores_),
          mask(one.mask_),
          terms(Terms(rank)),
          gates(first_gates),
          hit_counts(std::vector<unsigned>(kQueries, 0)),
          hits(std::size_t{kQueries} * capacity) {
      pass.batch = kQueries;
      pass.terms = terms.data();
      pass.gates = gates.data();
      pass.hit_counts = hit_counts.data();
      pass.hits = hits.data();
      pass.capacity = capacity;
    }
    std::vector<QueryTerms> Terms(unsigned rank) const {
      std::vector<QueryTerms> all(kQueries, QueryTerms{});
      for (unsigned query = 0; query < kQueries; ++query) {
        all[query].wanted = 1;
        all[query].rank = rank;
        if (query % 2 == 1) all[query].mask = mask.data();
      }
      return all;
    }

    const DeviceArray<__half> scores;
    const DeviceArray<unsigned> mask;
    const DeviceArray<QueryTerms> terms;
    const DeviceArray<float> gates;
    const DeviceArray<unsigned> hit_counts;
    const DeviceArray<Hit> hits;
    Pass pass{};
  };

  float Score(unsigned query, unsigned column) const {
    return __half2float(scores_[std::size_t{query} * pitch_ + column]);
  }
  bool Passes(unsigned query, unsigned column) const {
    const unsigned position = first_ + column;
    return query % 2 == 0 || (mask_[position / 32] >> position % 32 & 1U) != 0;
  }

  const unsigned first_, columns_, pitch_;
  std::vector<__half> scores_;
  std::vector<unsigned> mask_;
};

TEST(SampleGateTest, IsTheRankthBestOfSamplesOfEverySize) {
  for (const unsigned group : {1U, kScoresOfLoad}) {
    for (const unsigned keys : {1U, 31U, 33U, 1'025U, 2'500U, kSampleKeysMax - 1, kSampleKeysMax}) {
      const unsigned rows = (keys - 1) * group + 1;  // the last load has a single row
      const TileCase tried(rows, 0, keys);
      for (const unsigned rank : {1U, keys / 2 + 1, keys + 1}) {
        tried.ExpectGate(group, rank,
                         std::to_string(rows) + " rows, group " + std::to_string(group) +
                             ", rank " + std::to_string(rank));
      }
    }
  }
}

TEST(TopkFp16Test, FindsTheHitsOfTilesOfEverySize) {
  for (const unsigned columns : {1U, 8U, 255U, 257U, 1'000U, 1'024U, 1'025U, 3'001U}) {
    const TileCase tried(columns, 2 * kTileGranule, columns);
    const std::string what = std::to_string(columns) + " columns";
    tried.ExpectHits(columns, what);
    tried.ExpectHits(columns / 16 + 1, what + ", too many hits");
  }
}

}  // namespace
}  // namespace simile::kernels

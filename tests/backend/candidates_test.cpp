#include "backend/cpu/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "certificate/padded_rows.h"
#include "certificate/score_bound.h"
#include "certificate/seeded_random.h"

namespace simile::backend::cpu {
namespace {

using tests::PaddedRows;
using tests::SeededRandom;

constexpr float kNoThreshold = -std::numeric_limits<float>::infinity();

// Rows of one number, which is their canonical score.
class ScoredRows {
 public:
  explicit ScoredRows(std::size_t count) : rows_(count, 1), query_(1, 1) { query_[0][0] = 1; }

  float& operator[](std::size_t index) { return rows_[index][0]; }
  std::size_t count() const { return rows_.row_count(); }
  SegmentRows Segment() const { return {rows_.view(), nullptr, Metric::kDot, kFirstRow}; }
  const float* query() const { return query_.view().data(); }
  RankKey KeyOf(std::uint32_t index) const {
    return {rows_[index][0], kFirstRow + static_cast<Row>(index)};
  }

  std::vector<RankKey> Best(std::size_t k, float threshold) const {
    std::vector<RankKey> keys;
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (rows_[i][0] >= threshold) keys.push_back(KeyOf(i));
    }
    std::ranges::sort(keys, std::greater<>());
    if (keys.size() > k) keys.resize(k);
    return keys;
  }

 private:
  static constexpr Row kFirstRow = 100;
  PaddedRows rows_;
  PaddedRows query_;
};

struct Draw {
  std::size_t count = 0;
  std::size_t k = 0;
  float threshold = kNoThreshold;
  double bound = 0;  // the greatest error of a cheap score
  std::vector<std::uint32_t> order;
};

Draw DrawOffers(ScoredRows& rows, SeededRandom& random) {
  Draw draw;
  draw.count = rows.count();
  draw.k = random.OneIn(4) ? draw.count : random.Between(1, draw.count);
  if (random.OneIn(2)) draw.k = random.Between(1, std::min<std::size_t>(draw.count, 30));
  // Scores all distinct, on a grid with many ties, or all the same; bounds from one that separates
  // all of them to one that separates none, which fills the buffers.
  const std::size_t grid = random.OneIn(4) ? 1 : (random.OneIn(2) ? 20 : 0);
  for (std::size_t i = 0; i < draw.count; ++i)
    rows[i] = grid == 0 ? random.Signed() : static_cast<float>(random.Below(grid)) / 16;
  draw.bound = std::ldexp(1.0, -static_cast<int>(random.Below(20)));
  if (random.OneIn(3)) draw.threshold = rows[random.Below(draw.count)];
  draw.order.resize(draw.count);
  std::iota(draw.order.begin(), draw.order.end(), 0U);
  for (std::size_t i = draw.count; i > 1; --i)
    std::swap(draw.order[i - 1], draw.order[random.Below(i)]);
  return draw;
}

CandidateScratch ScratchFor(std::size_t candidates_max) {
  CandidateScratch scratch;
  scratch.Reserve(candidates_max);
  return scratch;
}

void Offer(Candidates& candidates, const Candidate& candidate, const Guess& guess,
           const Rescorer& rescorer, CandidateScratch& scratch) {
  if (candidates.full()) candidates.MakeSpace(guess, rescorer, scratch);
  candidates.Offer(candidate);
}

Candidate MakeCandidate(std::uint32_t index, float score, double bound, SeededRandom& random) {
  const double cheap = static_cast<double>(score) + bound * static_cast<double>(random.Signed());
  const auto [lower, upper] = certificate::MakeRange(cheap, bound);
  return {index, lower, upper};
}

const certificate::CanonicalKernel& Kernel() {
  return *certificate::SupportedCanonicalKernels().back();
}

constexpr std::uint64_t kSeed = 61;

TEST(CandidatesTest, KeepsTheBestWithProvenGates) {
  SeededRandom random(kSeed);
  for (int round = 0; round < 1'500; ++round) {
    ScoredRows rows(random.OneIn(10) ? random.Between(1, 5'000) : random.Between(1, 700));
    const Draw draw = DrawOffers(rows, random);
    const std::vector<RankKey> best = rows.Best(draw.k, draw.threshold);
    std::uint64_t rescored = 0;
    const SegmentRows segment = rows.Segment();
    const Rescorer rescorer(Kernel(), segment, rows.query(), rescored);
    std::vector<Candidate> buffer(Candidates::CapacityFor(draw.k, draw.count));
    CandidateScratch scratch = ScratchFor(buffer.size());
    Candidates candidates(buffer, draw.k, draw.threshold);
    const Guess proven{draw.k, 1};
    for (const std::uint32_t index : draw.order) {
      Offer(candidates, MakeCandidate(index, rows[index], draw.bound, random), proven, rescorer,
            scratch);
      if (candidates.due()) candidates.Tighten(proven, scratch);
      // k rows reach a proven gate, or it is the threshold.
      ASSERT_TRUE(candidates.gate() == draw.threshold ||
                  (best.size() == draw.k && candidates.gate() <= best.back().score()))
          << "seed " << kSeed << ", round " << round;
    }
    ASSERT_LE(candidates.all().size(), buffer.size());
    std::vector<Candidate> left(candidates.all().begin(), candidates.all().end());
    std::span<const RankKey> found = FindBest(left, draw.k, rescorer, scratch);
    while (!found.empty() && found.back().score() < draw.threshold)
      found = found.first(found.size() - 1);
    ASSERT_TRUE(std::ranges::equal(found, best)) << "seed " << kSeed << ", round " << round;
    ASSERT_LE(rescored, draw.count) << "a row was scored twice: seed " << kSeed;
  }
}

TEST(CandidatesTest, DropsOnlyWhatIsBelowTheGateOrBeatenByKRows) {
  SeededRandom random(kSeed);
  for (int round = 0; round < 1'500; ++round) {
    ScoredRows rows(random.Between(1, 900));
    const Draw draw = DrawOffers(rows, random);
    const std::vector<RankKey> best = rows.Best(draw.k, kNoThreshold);
    std::uint64_t rescored = 0;
    const SegmentRows segment = rows.Segment();
    const Rescorer rescorer(Kernel(), segment, rows.query(), rescored);
    std::vector<Candidate> buffer(Candidates::CapacityFor(draw.k, draw.count));
    CandidateScratch scratch = ScratchFor(buffer.size());
    Candidates candidates(buffer, draw.k, draw.threshold);
    std::vector<Candidate> offered(draw.count);
    for (const std::uint32_t index : draw.order) {
      // Any guess, and any gate from another thread.
      const Guess guess{random.Between(1, draw.k), std::fabs(random.Signed())};
      offered[index] = MakeCandidate(index, rows[index], draw.bound, random);
      Offer(candidates, offered[index], guess, rescorer, scratch);
      if (candidates.due()) candidates.Tighten(guess, scratch);
      if (random.OneIn(200)) candidates.RaiseGate(rows[random.Below(draw.count)]);
    }
    std::vector<bool> kept(draw.count, false);
    for (const Candidate& candidate : candidates.all()) {
      ASSERT_FALSE(kept[candidate.index]) << "twice: seed " << kSeed << ", round " << round;
      kept[candidate.index] = true;
      ASSERT_TRUE(candidate.lower <= rows[candidate.index] &&
                  rows[candidate.index] <= candidate.upper);
    }
    for (std::uint32_t index = 0; index < draw.count; ++index) {
      // WriteAnswer relies on this: a dropped row scores below the gate or is not among the k best.
      ASSERT_TRUE(kept[index] || rows[index] < candidates.gate() || rows.KeyOf(index) < best.back())
          << "seed " << kSeed << ", round " << round << ", row " << index << " with "
          << rows[index];
    }
  }
}

TEST(CandidatesTest, GuessesNoHigherThanTheBestSeen) {
  ScoredRows rows(300);
  for (std::size_t i = 0; i < rows.count(); ++i) rows[i] = static_cast<float>(i);
  std::vector<Candidate> buffer(Candidates::CapacityFor(10, rows.count()));
  Candidates candidates(buffer, 10, kNoThreshold);
  for (std::uint32_t i = 0; i < 100; ++i) candidates.Offer({i, rows[i] - 2, rows[i] + 2});
  CandidateScratch scratch = ScratchFor(buffer.size());
  candidates.Tighten({3, 0.25F}, scratch);
  // The third best cheap score is 97, and a quarter of its bound 0.5.
  EXPECT_EQ(candidates.gate(), 96.5F);
  candidates.RaiseGate(90);
  EXPECT_EQ(candidates.gate(), 96.5F) << "gates never fall";
}

TEST(CandidatesTest, GuessesTheScoreThatRankRowsShouldReach) {
  ScoredRows rows(3);
  std::vector<Candidate> buffer(Candidates::CapacityFor(2, rows.count()));
  Candidates candidates(buffer, 2, kNoThreshold);
  const Guess guess{2, 0.25F};
  // One scored already, at 5; one with a wide bound, guessed to reach 5.5 though its lower bound
  // is 4.
  candidates.Offer({0, 5, 5});
  candidates.Offer({1, 4, 8});
  CandidateScratch scratch = ScratchFor(buffer.size());
  candidates.Tighten(guess, scratch);
  EXPECT_EQ(candidates.gate(), 5);
}

// A guess may be lower than the score of its rank, by a 32nd of the rank.
TEST(CandidatesTest, GuessesTheRankthBestOfAnyNumberOrALittleLess) {
  SeededRandom random(kSeed);
  for (int round = 0; round < 2'000; ++round) {
    const std::size_t count = random.Between(1, random.OneIn(10) ? 9'000 : 600);
    const std::size_t rank = random.Between(1, count);
    std::vector<Candidate> buffer(Candidates::CapacityFor(count, count));
    Candidates candidates(buffer, count, kNoThreshold);
    std::vector<float> scores(count);
    // Distinct, or with ties, of both signs, on scales from 1 to 2^40.
    const std::size_t grid = random.OneIn(2) ? 1 + random.Below(20) : count * 64;
    const float unit = std::ldexp(1.0F, static_cast<int>(random.Below(40)));
    const auto zero = static_cast<float>(random.Below(grid + 1));
    for (std::uint32_t i = 0; i < count; ++i) {
      scores[i] = unit * (static_cast<float>(random.Below(grid)) - zero);
      candidates.Offer({i, scores[i], scores[i]});
    }
    CandidateScratch scratch = ScratchFor(count);
    candidates.Tighten({rank, 1}, scratch);
    const float gate = candidates.gate();
    const auto reach = std::ranges::count_if(scores, [gate](float score) { return score >= gate; });
    const auto exceed = std::ranges::count_if(scores, [gate](float score) { return score > gate; });
    ASSERT_GE(static_cast<std::size_t>(reach), rank) << "seed " << kSeed << ", round " << round;
    ASSERT_LT(static_cast<std::size_t>(exceed), rank + rank / 32)
        << "seed " << kSeed << ", round " << round;
    ASSERT_TRUE(std::ranges::find(scores, gate) != scores.end());
  }
}

// More than are sorted by comparing, with ties that their rows break.
TEST(CandidatesTest, RanksManyKnownScores) {
  SeededRandom random(kSeed);
  for (int round = 0; round < 200; ++round) {
    ScoredRows rows(random.Between(1, 3'000));
    const std::size_t grid = random.OneIn(3) ? 2 : 100'000;
    std::vector<Candidate> candidates;
    for (std::uint32_t i = 0; i < rows.count(); ++i) {
      rows[i] = random.Signed() * static_cast<float>(1 + random.Below(grid));
      if (grid == 2) rows[i] = std::round(rows[i]);
      candidates.push_back({i, rows[i], rows[i]});
    }
    for (std::size_t i = candidates.size(); i > 1; --i)
      std::swap(candidates[i - 1], candidates[random.Below(i)]);
    const std::size_t k = random.Between(1, rows.count());
    CandidateScratch scratch = ScratchFor(candidates.size());
    ASSERT_TRUE(std::ranges::equal(RankBest(candidates, k, rows.Segment().first_row, scratch),
                                   rows.Best(k, kNoThreshold)))
        << "seed " << kSeed << ", round " << round;
  }
}

TEST(CandidatesTest, RefusesWhatLiesBelowTheGate) {
  ScoredRows rows(3);
  std::vector<Candidate> buffer(Candidates::CapacityFor(1, rows.count()));
  Candidates candidates(buffer, 1, 0.5F);
  candidates.Offer({0, 0.1F, std::nextafter(0.5F, 0.0F)});
  EXPECT_TRUE(candidates.all().empty());
  candidates.Offer({1, 0.1F, 0.5F});  // may reach it
  EXPECT_EQ(candidates.all().size(), 1U);
}

}  // namespace
}  // namespace simile::backend::cpu

#include "engine/search/row_scorer.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "engine/fake_segment.h"
#include "engine/sample_data.h"

namespace simile::engine {
namespace {

// Scores with so many vectors that a piece scores kRowsOfPiece rows.
class RowScorerTest : public testing::Test {
 protected:
  static constexpr std::size_t kVectors = 32;
  static constexpr std::size_t kDim = 4'096;
  static constexpr std::size_t kRowsOfPiece = 64;
  static constexpr std::size_t kRows = 200;

  RowScorerTest() {
    query_.k = 3;
    query_.score_threshold = -2;
    query_.excluded_rows = {0, 65, 199};
    query_.vector_count = kVectors;
  }

  // Scores all rows that pass. Returns how many pieces that took.
  std::size_t ScoreAll(const RowMask* mask) {
    scorer_.BeginAll(mask, 3);
    return ScoreToTheEnd();
  }
  std::size_t ScoreToTheEnd() {
    std::size_t pieces = 0;
    for (; !scorer_.done(); ++pieces) {
      const absl::Status status = scorer_.ScorePiece();
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) break;
    }
    return pieces;
  }

  std::shared_ptr<FakeSegment> segment_;
  const Snapshot snapshot_ = MakeSnapshot(RandomDataset(kRows, kDim, 1), &segment_);
  const data::Matrix vectors_ = RandomMatrix(kVectors, kDim, 2);
  ResolvedQuery query_;
  SegmentSearch search_;
  Execution execution_;
  RowScorer scorer_{query_, vectors_.view(), snapshot_, search_, execution_};
};

TEST_F(RowScorerTest, FindsTheBestOfAllRowsThatPass) {
  RowMask mask(kRows);
  for (Row row = 0; row < kRows; row += 5) mask.Allow(row);
  QuerySpec spec{.k = 3, .mask = &mask, .excluded_rows = query_.excluded_rows};
  SearchResult expected;
  const MatrixView first_vector = vectors_.view().Slice(0, 1);
  ASSERT_TRUE(segment_->Search({first_vector, {&spec, 1}}, expected).ok());
  ScoreAll(&mask);  // a similarity: of the first vector
  EXPECT_EQ(scorer_.TakeHits(), std::vector<Hit>(expected.Hits(0).begin(), expected.Hits(0).end()));
  EXPECT_EQ(execution_.cost.rows_scanned, 38U) << "40 pass the mask, 2 of them are excluded";
}

TEST_F(RowScorerTest, CountsAllRowsButTheExcluded) {
  ScoreAll(nullptr);
  EXPECT_EQ(execution_.cost.rows_scanned, kRows - 3);
  EXPECT_EQ(execution_.cost.rows_rescored, 0U);
}

TEST_F(RowScorerTest, ScoresAPieceAtATime) {
  EXPECT_EQ(ScoreAll(nullptr), 4U);
  std::vector<Row> rows(kRows);
  std::iota(rows.begin(), rows.end(), Row{0});
  scorer_.Begin(rows, 3);
  ASSERT_TRUE(scorer_.ScorePiece().ok());
  EXPECT_FALSE(scorer_.done());
  EXPECT_EQ(execution_.cost.rows_rescored, kRowsOfPiece);
  EXPECT_EQ(ScoreToTheEnd(), 3U);
  EXPECT_EQ(execution_.cost.rows_rescored, kRows);
}

TEST_F(RowScorerTest, FindsTheBestOfTheRowsGiven) {
  scorer_.Begin({3, 77, 150, 199}, 3);
  ScoreToTheEnd();
  const std::vector<Hit> hits = scorer_.TakeHits();
  ASSERT_EQ(hits.size(), 3U);
  EXPECT_GT(hits[0].score, hits[2].score);
  scorer_.Begin({}, 3);
  EXPECT_TRUE(scorer_.done());
  EXPECT_TRUE(scorer_.TakeHits().empty());
}

TEST_F(RowScorerTest, CountsNoRowsThatTheBackendFailedToScore) {
  segment_->on_score = [] { return absl::UnavailableError("the device is gone"); };
  scorer_.BeginAll(nullptr, 3);
  EXPECT_EQ(scorer_.ScorePiece(), absl::UnavailableError("the device is gone"));
  EXPECT_EQ(execution_.cost.rows_scanned, 0U);
}

TEST_F(RowScorerTest, KeepsTheFirstFallbackBackendThatScored) {
  const auto first = std::make_shared<const ServedBy>(ServedBy{{"other", "", ""}, "it failed"});
  segment_->scorer = first;
  ScoreAll(nullptr);
  segment_->scorer = std::make_shared<const ServedBy>();
  ScoreAll(nullptr);
  EXPECT_EQ(execution_.fallback, first);
}

TEST_F(RowScorerTest, OffersRowsInsteadOfKeepingTheBest) {
  std::vector<RankKey> offered;
  scorer_.BeginAll(nullptr, 1);
  scorer_.OfferTo([&](RankKey key) { offered.push_back(key); });
  ScoreToTheEnd();
  EXPECT_TRUE(scorer_.TakeHits().empty());
  EXPECT_EQ(offered.size(), kRows - query_.excluded_rows.size());
  ScoreAll(nullptr);
  const RankKey best = *std::ranges::max_element(offered);
  EXPECT_EQ(ToRankKey(scorer_.TakeHits().front()), best) << "it keeps the best again";
}

}  // namespace
}  // namespace simile::engine

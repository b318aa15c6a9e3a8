#include "engine/search/row_scorer.h"

#include <numeric>

#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/fake_clock.h"
#include "engine/fake_segment.h"
#include "engine/sample_data.h"

namespace simile::engine {
namespace {

// Scores with so many vectors that the rows are scored kRowsAtOnce at a time.
class RowScorerTest : public testing::Test {
 protected:
  static constexpr std::size_t kVectors = 1U << 14;
  static constexpr std::size_t kRowsAtOnce = 64;
  static constexpr std::size_t kRows = 200;

  RowScorerTest() {
    query_.k = 3;
    query_.score_threshold = -2;
    query_.excluded_rows = {0, 65, 199};
    query_.vector_count = kVectors;
    task_.deadline = Clock::TimePoint::max();
  }

  std::shared_ptr<FakeSegment> segment_;
  const Snapshot snapshot_ = SnapshotOf(RandomDataset(kRows, 2, 1), &segment_);
  const data::Matrix vectors_ = RandomMatrix(kVectors, 2, 2);
  FakeClock clock_;
  SearchTask task_;
  const CallContext context_{task_, clock_};
  ResolvedQuery query_;
  SegmentSearch search_;
  Execution execution_;
  RowScorer scorer_{query_, vectors_.view(), snapshot_, search_, context_, execution_};
};

TEST_F(RowScorerTest, FindsTheBestOfAllRowsThatPass) {
  RowMask mask(kRows);
  for (Row row = 0; row < kRows; row += 5) mask.Allow(row);
  QuerySpec spec{.k = 3, .mask = &mask, .excluded_rows = query_.excluded_rows};
  SearchResult expected;
  const MatrixView first_vector = vectors_.view().Slice(0, 1);
  ASSERT_TRUE(segment_->Search({first_vector, {&spec, 1}}, expected).ok());
  const auto best = scorer_.BestOfAll(&mask, 3);  // a similarity: of the first vector
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(*best, std::vector<Hit>(expected.Hits(0).begin(), expected.Hits(0).end()));
  EXPECT_EQ(execution_.cost.rows_scanned, 38U) << "40 pass the mask, 2 of them are excluded";
}

TEST_F(RowScorerTest, CountsAllRowsButTheExcluded) {
  ASSERT_TRUE(scorer_.BestOfAll(nullptr, 3).ok());
  EXPECT_EQ(execution_.cost.rows_scanned, kRows - 3);
  EXPECT_EQ(execution_.cost.rows_rescored, 0U);
}

TEST_F(RowScorerTest, StopsAtOnceWhenTheCallerIsGoneAndCountsOnlyRowsScored) {
  std::size_t scored = 0;
  segment_->on_score = [&] {
    ++scored;
    return absl::OkStatus();
  };
  task_.cancelled = [&] { return scored == 2; };
  const absl::Status gone =
      base::Error(base::ErrorReason::kCancelled, "the caller gave up before the answer was found");
  EXPECT_EQ(scorer_.BestOfAll(nullptr, 3).status(), gone);
  EXPECT_EQ(scored, 2U);
  EXPECT_EQ(execution_.cost.rows_scanned, 2 * kRowsAtOnce);

  std::vector<Row> rows(kRows);
  std::iota(rows.begin(), rows.end(), Row{0});
  scored = 1;
  EXPECT_EQ(scorer_.BestOf(rows, 3).status(), gone);
  EXPECT_EQ(execution_.cost.rows_rescored, kRowsAtOnce);
}

TEST_F(RowScorerTest, CountsNoRowsThatTheBackendFailedToScore) {
  segment_->on_score = [] { return absl::UnavailableError("the device is gone"); };
  EXPECT_EQ(scorer_.BestOfAll(nullptr, 3).status(), absl::UnavailableError("the device is gone"));
  EXPECT_EQ(execution_.cost.rows_scanned, 0U);
}

TEST_F(RowScorerTest, KeepsTheFirstFallbackBackendThatScored) {
  const auto first = std::make_shared<const ServedBy>(ServedBy{{"other", "", ""}, "it failed"});
  segment_->scorer = first;
  ASSERT_TRUE(scorer_.BestOfAll(nullptr, 3).ok());
  segment_->scorer = std::make_shared<const ServedBy>();
  ASSERT_TRUE(scorer_.BestOfAll(nullptr, 3).ok());
  EXPECT_EQ(execution_.fallback, first);
}

}  // namespace
}  // namespace simile::engine

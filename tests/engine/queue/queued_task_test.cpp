#include "engine/queue/queued_task.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "engine/sample_data.h"

namespace simile::engine {
namespace {

class TaskCostTest : public testing::Test {
 protected:
  TaskCostTest() {
    task_.snapshot = std::make_shared<const Snapshot>(MakeSnapshot(RandomDataset(1'000, 8, 1)));
    task_.queries.resize(2);
    task_.vectors = RandomMatrix(2, 8, 2);
  }

  SearchTask task_;
};

TEST_F(TaskCostTest, PutsATaskIntoTheLaneOfItsHardestQuery) {
  EXPECT_FALSE(IsHard(task_));
  EXPECT_EQ(ChooseLane(task_), Lane::kPlain);
  task_.queries[1].diversity = Diversity{};
  EXPECT_TRUE(IsHard(task_));
  EXPECT_EQ(ChooseLane(task_), Lane::kHard);
  task_.priority = Priority::kBulk;
  EXPECT_EQ(ChooseLane(task_), Lane::kBulk);
}

TEST_F(TaskCostTest, CountsVectorsAsSearches) {
  EXPECT_EQ(CountSearches(task_), 2U);
  task_.vectors = RandomMatrix(7, 8, 2);
  EXPECT_EQ(CountSearches(task_), 7U);
  task_.vectors = data::Matrix();
  EXPECT_EQ(CountSearches(task_), 2U) << "a cold start has no vector";
}

TEST_F(TaskCostTest, CountsPairsOfRowsAndRowsInOrder) {
  const CostEstimator estimator;
  EXPECT_EQ(WorkMs(task_, estimator), 0);
  task_.queries[0].k = 20;
  task_.queries[0].diversity = Diversity{.lambda = 0.5F, .candidates = 300};
  const double pairs_ms = estimator.ScoresMs(20 * 300 * 8);
  EXPECT_DOUBLE_EQ(WorkMs(task_, estimator), pairs_ms);
  const std::vector<Row> rows;
  task_.queries[1].order.emplace("", &rows, 1'000);
  task_.queries[1].k = 100;
  EXPECT_NEAR(WorkMs(task_, estimator), pairs_ms + 0.001, 1e-9) << "10 ns a row";
  task_.queries[1].mask = std::make_shared<const RowMask>(1'000);
  EXPECT_NEAR(WorkMs(task_, estimator), pairs_ms + 0.01, 1e-9) << "all rows may be passed over";
}

TEST_F(TaskCostTest, FindsTheLongestListOfATask) {
  task_.queries[0].k = 20;
  EXPECT_EQ(FindListLength(task_), 20U);
  task_.queries[1].diversity = Diversity{.lambda = 0.5F, .candidates = 3'000};
  EXPECT_EQ(FindListLength(task_), 3'000U);
  task_.queries[1].scoring = Scoring::kSumScores;
  EXPECT_GT(FindListLength(task_), 3'000U) << "some that are proposed do not come to be hits";
}

TEST_F(TaskCostTest, CountsWhatATaskHolds) {
  const std::uint64_t before = SumBytes(task_);
  task_.queries[0].excluded_rows.reserve(10'000);
  EXPECT_EQ(SumBytes(task_), before + 40'000);
  const auto mask = std::make_shared<const RowMask>(1'000);
  task_.queries[0].mask = mask;
  EXPECT_EQ(SumBytes(task_), before + 40'000 + mask->bytes() / 2) << "the other half is the test's";
  task_.queries[0].mask = nullptr;
  task_.request_bytes = 500;
  EXPECT_EQ(SumBytes(task_), before + 40'500);
}

TEST_F(TaskCostTest, CountsAListThatQueriesShareOnce) {
  task_.queries.assign(4, {});
  const std::uint64_t before = SumBytes(task_);
  auto rows = std::make_shared<const std::vector<Row>>(std::vector<Row>(1'000));
  for (ResolvedQuery& query : task_.queries) query.shared_excluded_rows = rows;
  rows.reset();
  EXPECT_EQ(SumBytes(task_), before + 4'000);
}

}  // namespace
}  // namespace simile::engine
